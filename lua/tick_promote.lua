-- Part of tick: what is due becomes ready. Shares the state of the call with the parts behind it; the keys and arguments are those in the
-- header of tick.lua.
local STEP, LOOK, SLACK, SLOWEST, WOKEN, GRACE = 2000, 5000, 1000, 60000, 1000, 60000
local prefix, worker, guard = ARGV[1], ARGV[4], ARGV[3] == '1'
local promote, reap, prune = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local ctx, role, stepped, recovered = begin(ARGV[1], ARGV[2]), 'other', '', {}
local promoted, pruned, again, heads, tails, scores = 0, 0, 'done', {}, {}, {}

-- A ticket with what the snapshot says of it. `gone`: nothing (any more) belongs to it.
local function look(ticket)
  local list, entry, id, task, tail = unticket(ticket)
  if not id then return { ticket = ticket, unreadable = 'the ticket cannot be read' } end
  local t = { ticket = ticket, list = list, entry = entry, id = id, task = task, name = 'task:' .. task }
  t.key, t.claim = prefix .. 'instance:' .. id, prefix .. 'claim:' .. id .. ':' .. task
  local r = try('HMGET', t.key, 'v', 'run', 'status', t.name, 'max_crashes', 'waiter')
  if r.err then
    t.unreadable = foreign(r) and 'the key does not hold a snapshot'
  elseif not r[1] and not r[2] then
    t.gone = true
  elseif r[1] ~= '1' then
    t.unreadable = 'unknown format ' .. (r[1] or '')
  elseif not r[2] then
    t.unreadable = 'the snapshot has no run'
  elseif sub(r[2], -12) ~= tail or r[3] ~= 'running' or not r[4] then
    t.gone = true
  else
    t.run, t.record, t.tail, t.most, t.waiter = r[2], r[4], tail, tonumber(r[5]) or 0, r[6]
    t.state, t.attempt, t.nonce, t.failures, t.crashes, t.worker, t.deadline = fields(r[4])
    if not t.state then t.unreadable = 'the task record cannot be read' end
  end
  return t
end

local function look_all(tickets, step)
  local all, keys = {}, { KEYS[4], KEYS[5], KEYS[7] }
  for i = 1, #tickets, step do
    local t = look(tickets[i])
    all[#all + 1] = t
    if guard and t.key then
      keys[#keys + 1], keys[#keys + 2] = t.key, t.claim
      keys[#keys + 1], keys[#keys + 2] = prefix .. 'ready:' .. t.list, prefix .. 'idle:' .. t.list
      keys[#keys + 1], keys[#keys + 2] = prefix .. 'errors:' .. t.id, prefix .. 'worker:' .. (t.worker or '-')
    end
  end
  if guard then here(KEYS[1], keys) end
  return all
end

local function push(lists, t, entry)
  local entries = lists[t.list] or {}
  lists[t.list], entries[#entries + 1] = entries, entry
end

local function set_aside(t) call('HSET', KEYS[7], t.ticket, t.unreadable) end

-- Entries go into their lists first: one whose record is not ready yet is dropped, and its ticket comes again.
local function flush(command, lists)
  for list, entries in pairs(lists) do
    for i = 1, #entries, 4000 do
      call(command, prefix .. 'ready:' .. list, unpack(entries, i, math.min(i + 3999, #entries)))
    end
  end
end

local function done_with(key, members)
  if #members > 0 then call('ZREM', key, unpack(members)) end
end

local function promote_due()
  local due = call('ZRANGEBYSCORE', KEYS[5], '-inf', ctx.at, 'LIMIT', 0, promote)
  if #due == promote then again = 'again' end
  local all, gone = look_all(due, 1), {}
  for _, t in ipairs(all) do
    gone[#gone + 1] = t.ticket
    if not t.list then set_aside(t) elseif t.unreadable or t.state == 'delayed' then push(tails, t, t.entry) end
  end
  flush('RPUSH', tails)
  for _, t in ipairs(all) do
    if t.state == 'delayed' and not t.unreadable then
      call('HSET', t.key, t.name, 'ready' .. sub(t.record, 8))
      promoted = promoted + 1
    end
  end
  done_with(KEYS[5], gone)
end


-- Part of tick: what is due becomes ready. Shares the state of the call with the parts behind it; the keys and
-- arguments are those in the header of tick.lua.
local STEP, LOOK, SLACK, SLOWEST, WOKEN, GRACE = 2000, 5000, 1000, 60000, 1000, 120000
local prefix, worker, guard = ARGV[1], ARGV[4], ARGV[3] == '1'
local promote, reap, prune = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local ctx, role, stepped, recovered = begin(ARGV[1], ARGV[2]), 'other', '', {}
local promoted, pruned, again, heads, tails, scores, presences = 0, 0, 'done', {}, {}, {}, {}

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

-- Why a snapshot cannot be read; nothing if it can.
local function unreadable(r)
  if r.err then return foreign(r) and 'the key does not hold a snapshot' end
  if r[1] ~= '1' then return 'unknown format ' .. (r[1] or '') end
  if not r[2] then return 'the snapshot has no run' end
end

local function is_live(r, tail)
  return sub(r[2], -12) == tail and (r[3] == 'running' or r[3] == 'paused') and r[4]
end

local function push(lists, list, entry)
  local entries = lists[list] or {}
  lists[list], entries[#entries + 1] = entries, entry
end

local function set_aside(ticket) call('HSET', KEYS[7], ticket, 'the ticket cannot be read') end

-- A node that waited for a signal too long waits no more.
local function stop_waiting(key, id, task)
  local left = {}
  for word in string.gmatch(call('HGET', key, 'waits') or '', ' %S+') do
    if not find(word, '=' .. task .. '=', 1, true) then left[#left + 1] = word end
  end
  if #left > 0 then return call('HSET', key, 'waits', table.concat(left)) end
  call('HDEL', key, 'waits')
  call('SREM', KEYS[13], id)
end

local function promote_due()
  local due = call('ZRANGEBYSCORE', KEYS[5], '-inf', ctx.at, 'LIMIT', 0, promote)
  if #due == promote then again = 'again' end
  local keys, sets, late = guard and { KEYS[5], KEYS[13] }, {}, {}
  for _, ticket in ipairs(due) do
    local list, entry, id, task, tail, ref = unticket(ticket)
    if id then
      local key, name = prefix .. 'instance:' .. id, 'task:' .. task
      local r = try('HMGET', key, 'v', 'run', 'status', name)
      if keys then
        keys[#keys + 1], keys[#keys + 2], keys[#keys + 3] = key, prefix .. 'ready:' .. list, prefix .. 'idle:' .. list
      end
      if r.err or r[1] or r[2] then
        local why = unreadable(r)
        local record = not why and is_live(r, tail)
        local waits = record and sub(record, 1, 8) == 'waiting ' and sub(ref, 1, 1) == '!'
        if waits then late[#late + 1] = { key, id, task } end
        if waits or record and sub(record, 1, 8) == 'delayed ' then
          push(tails, list, entry)
          sets[#sets + 1], sets[#sets + 2], sets[#sets + 3] = key, name, 'ready' .. sub(record, 8)
        elseif why or record and not fields(record) then
          -- Whoever claims it sets it aside.
          push(tails, list, entry)
        end
      end
    else
      set_aside(ticket)
    end
  end
  if keys then here(KEYS[1], keys) end
  flush('RPUSH', tails)
  for i = 1, #sets, 3 do call('HSET', sets[i], sets[i + 1], sets[i + 2]) end
  for _, wait in ipairs(late) do stop_waiting(unpack(wait)) end
  promoted = #sets / 3
  done_with(KEYS[5], due)
end


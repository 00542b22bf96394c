-- Part of settle: what follows a completed task. Shares the state of the call with the parts behind it; the keys and
-- arguments are those in the header of settle.lua.
local LOOK = 5000
local ctx, worker, ttl = begin(ARGV[1], ARGV[2]), ARGV[3], ARGV[4]
local lists, look = tonumber(ARGV[5]), text(ctx.now + math.min(tonumber(ARGV[4]), LOOK))
-- What the call writes at its end, each in one command: tickets that are claimed, entries by list, and so on.
local replies, running, queued, finished, tickets, claims, changed = {}, {}, {}, {}, {}, {}, false

local function queue(list, entry)
  local entries = queued[list]
  if not entries then
    entries = {}
    queued[list] = entries
  end
  entries[#entries + 1] = entry
end

local function claimed(ticket)
  local n = #running
  running[n + 1], running[n + 2] = look, ticket
end

-- The instance has no token left: `r` is what was read of it; `payload` is its result, if that is stored just now.
local function finish(key, id, r, result, payload, ...)
  local times = (string.match(r[6] or '', '^%d+') or '-') .. ' ' .. ctx.at .. result
  if r[4] then
    call('HSET', key, 'open', '0', 'status', 'completed', 'times', times, ...)
  else
    call('HSET', key, 'status', 'completed', 'times', times, ...)
  end
  finished[#finished + 1] = over(ctx, id, r[1], r[2], 'completed', r[5], nil, payload)
  return 'stored'
end

-- Nothing follows but, maybe, the end.
local function ends(key, r, open, a, last)
  local id, result = ARGV[a], ARGV[a + 1]
  if open == 1 then
    local payload = ARGV[a + 4] == result and ARGV[a + 5]
    return finish(key, id, r, result == '' and '' or ' ' .. result, payload, unpack(ARGV, a + 2, last))
  end
  call('HSET', key, 'open', open - 1, unpack(ARGV, a + 2, last))
  if result ~= '' then call('HSET', key, 'result', result) end
  return 'stored'
end

-- The join record with one more arrival, and whether it fires now; nothing if it cannot be read.
local function arrive(record, who, need, total)
  local arrived, failed, fired, names = 0, 0, '0', ''
  if record then
    arrived, failed, need, total, fired, names = string.match(record, '^(%d+) (%d+) (%d+) (%d+) ([01]) (.*)$')
    if not arrived then return end
  end
  arrived = arrived + 1
  local fires = fired == '0' and arrived >= tonumber(need)
  names = names == '' and who or names .. ',' .. who
  return table.concat({ arrived, failed, need, total, fires and '1' or fired, names }, ' '), fires
end

-- Claims a follow-up for the caller: the fields to store, and the answer.
local function claim_next(claim, run, set, a, f, attempt)
  local list, entry, nonce = ARGV[6 + ARGV[f + 1]], ARGV[f + 2], ARGV[a + 1]
  local ends_at, due = tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  ends_at, due = ends_at and ctx.now + ends_at, due and ctx.now + due
  if due and (not ends_at or due < ends_at) then ends_at = due end
  local record = 'running ' .. attempt .. ' ' .. nonce .. ' 0 0 ' .. worker .. ' ' .. (ends_at and text(ends_at) or '-')
  call('SET', claim, worker .. ' ' .. run .. ' ' .. attempt .. ' ' .. nonce .. ' ' .. ttl, 'PX', ttl)
  claimed(list .. '\0' .. entry)
  set[#set + 1], set[#set + 2] = 'task:' .. ARGV[f + 3], record
  due = due and text(due)
  if due then set[#set + 1], set[#set + 2] = 'due:' .. ARGV[f + 3], due end
  return { 'claimed', list, entry, run, record, due or '' }
end

-- After a retry a follow-up may have been claimed before: its attempts go on from there.
local function claimed_before(key, name)
  local _, attempt = fields(call('HGET', key, name))
  return tonumber(attempt or 0)
end

-- Of the joins `known` has those that were read already.
local function follow(key, claim, name, open, r, known, a, last)
  local id, run, status, before = ARGV[a - 1], r[1], r[2], r[7] and {}
  local wanted, follows, delta = tonumber(ARGV[a]), tonumber(ARGV[a + 5]), -1
  local set, joins, full, after, taken = { unpack(ARGV, a + 6 + 6 * follows, last) }, {}, {}, {}, nil
  local ready, waits = {}, nil
  for i = 1, follows do
    local f = a + 6 * i
    local kind, list, runs = ARGV[f], ARGV[f + 1], ARGV[f] == 'ready'
    if kind == 'arrive' then
      local join = 'join:' .. ARGV[f + 3]
      if known[join] == nil then known[join] = call('HGET', key, join) end
      joins[join], runs = arrive(joins[join] or known[join], sub(name, 6), ARGV[f + 4], ARGV[f + 5])
      if not joins[join] then return 'lost' end
      set[#set + 1], set[#set + 2] = join, joins[join]
      if runs then set[#set + 1], set[#set + 2] = 'task:' .. ARGV[f + 3], 'ready 0 - 0 0 - -' end
    end
    if runs or kind == 'after' then delta = delta + 1 end
    if before and (runs or kind == 'after' or kind == 'await') then
      before[f] = ' ' .. claimed_before(key, 'task:' .. ARGV[f + 3]) .. ' - 0 0 - -'
      if kind ~= 'await' then set[#set + 1], set[#set + 2] = 'task:' .. ARGV[f + 3], (runs and 'ready' or 'delayed') .. before[f] end
    end
    if kind == 'await' then
      waits, delta = waits or awaiting(ctx, key), delta + 1
      await(waits, set, list, ARGV[f + 2], ARGV[f + 3], tonumber(ARGV[f + 4]), ARGV[f + 5], before and before[f] or ' 0 - 0 0 - -')
      local met = table.remove(waits.ready)
      if met then full[list], ready[#ready + 1], ready[#ready + 2] = true, met[1], met[2] end
    end
    if runs and i == wanted and status == 'running' and (ARGV[a + 2] == 'always'
        or not full[list] and not queued[list] and call('LLEN', KEYS[7 + 2 * list]) == 0) then
      taken = f
    elseif runs then
      full[list], ready[#ready + 1], ready[#ready + 2] = true, list, ARGV[f + 2]
    elseif kind == 'after' then
      after[#after + 1] = f
    end
  end
  local reply = taken and claim_next(claim, run, set, a, taken, (before and tonumber(string.match(before[taken], '%d+')) or 0) + 1) or 'stored'
  open = open + delta
  if waits then awaited(waits, set) end
  if open == 0 then
    finish(key, id, r, '', nil, unpack(set))
  else
    if delta ~= 0 then set[#set + 1], set[#set + 2] = 'open', open end
    call('HSET', key, unpack(set))
  end
  if waits then place(waits, id, queue) end
  for i = 1, #ready, 2 do queue(ready[i], ready[i + 1]) end
  for _, f in ipairs(after) do
    delay(ctx, KEYS[4], ctx.now + tonumber(ARGV[f + 4]), ARGV[6 + ARGV[f + 1]] .. '\0' .. ARGV[f + 2])
  end
  return reply
end


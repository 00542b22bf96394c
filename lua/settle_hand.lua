-- Part of settle: a task that follows another and goes to the same caller. Shares the state of the call with the parts
-- around it; the keys and arguments are those in the header of settle.lua.
local function handed(ticket, run, record)
  local list, entry = unticket(ticket)
  return { 'claimed', list, entry, run, record, '' }
end

-- What the client has built does not fit: the instance is paused, or was retried. A list may be one that it did not name.
local function hand_on_otherwise(key, claim, run, status, retries, a, last)
  local list, entry = unticket(ARGV[a])
  local attempt, record = retries and claimed_before(key, ARGV[last - 1]) or 0, ARGV[last]
  local set = { unpack(ARGV, a + 2, last - 1) }
  if status == 'running' then
    record = 'running ' .. attempt + 1 .. sub(record, 10)
    call('SET', claim, table.concat({ worker, run, attempt + 1, string.match(record, '^%l+ %d+ (%S+)'), ttl }, ' '), 'PX', ttl)
    claimed(ARGV[a])
    set[#set + 1] = record
    call('HSET', key, unpack(set))
    return handed(ARGV[a], run, record)
  end
  call('EXISTS', key, ctx.prefix .. 'ready:' .. list, ctx.prefix .. 'idle:' .. list)
  set[#set + 1] = 'ready ' .. attempt .. ' - 0 0 - -'
  call('HSET', key, unpack(set))
  for i = 1, lists do
    if ARGV[6 + i] == list then list = tostring(i) end
  end
  queue(list, entry)
  return 'stored'
end

-- One task follows, and the caller goes on with it: the client has built all that is stored.
local function hand_on(key, claim, run, status, retries, a, last)
  if status ~= 'running' or retries then return hand_on_otherwise(key, claim, run, status, retries, a, last) end
  call('SET', claim, ARGV[a + 1], 'PX', ttl)
  claimed(ARGV[a])
  call('HSET', key, unpack(ARGV, a + 2, last))
  return 'claimed'
end

-- What a repeat gets for the follow-up that it wanted: the same claim, if it is still the caller's.
local function again(verdict, key, run, a, last)
  if verdict == 'handed' then
    local stored, _, _, mine = call('HGET', key, ARGV[last - 1]), fields(ARGV[last])
    if stored == ARGV[last] then return 'claimed' end
    local state, _, by, _, _, owner = fields(stored)
    return state == 'running' and by == mine and owner == worker and handed(ARGV[a], run, stored) or 'stored'
  end
  local wanted = verdict == 'follow' and tonumber(ARGV[a + 1]) or 0
  if wanted == 0 then return 'stored' end
  local f = a + 1 + 6 * wanted
  local next = call('HMGET', key, 'task:' .. ARGV[f + 3], 'due:' .. ARGV[f + 3])
  local now, _, by, _, _, owner = fields(next[1])
  if now ~= 'running' or by ~= ARGV[a + 2] or owner ~= worker then return 'stored' end
  return { 'claimed', ARGV[6 + ARGV[f + 1]], ARGV[f + 2], run, next[1], next[2] or '' }
end

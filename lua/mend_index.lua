-- Part of mend: indexes, claim keys and keys without an instance. Shares the state of the call with the part behind it;
-- the keys and arguments are those in the header of mend.lua.
local NEAR, FAR = 1000, 100000
local key, ctx, actions = KEYS[3], begin(ARGV[1], ARGV[2]), {}

-- Something is wrong: what to do about it is done only if that was asked for.
local function ill(change)
  if ARGV[3] == 'look' then return 'ill' end
  call('ZREM', KEYS[1], '')
  change()
  return 'mended'
end

local function push(ready, entry)
  call('RPUSH', ready, entry)
  call('SADD', KEYS[5], ARGV[5])
  wake(ctx, KEYS[6], KEYS[1], 1)
end

-- An instance is among those that wait, or are paused, if and only if its snapshot says so.
function actions.member()
  local r = try('HMGET', key, 'status', 'waits')
  if r.err then return foreign(r) and 'left' end
  local belongs = r[1] == 'paused'
  if ARGV[6] == 'waiting' then belongs = (r[2] or '') ~= '' end
  if (call('SISMEMBER', KEYS[4], ARGV[7]) == 1) == belongs then return 'well' end
  return ill(function() call(belongs and 'SADD' or 'SREM', KEYS[4], ARGV[7]) end)
end

local function at_of(entry) return tonumber(string.match(entry, '^%d+') or '0') end

-- Into its place among those that ended before and after it, if that is near an end of the index.
local function insert(done, entry, at)
  local tail, after = call('LRANGE', done, -NEAR, -1), {}
  while #tail > 0 and at_of(tail[#tail]) > at do table.insert(after, 1, table.remove(tail)) end
  if #tail > 0 or #after < NEAR then
    if #after > 0 then call('LTRIM', done, 0, -1 - #after) end
    table.insert(after, 1, entry)
    return append(done, after)
  end
  local head, before = call('LRANGE', done, 0, NEAR - 1), {}
  while #head > 0 and at_of(head[1]) <= at do table.insert(before, table.remove(head, 1)) end
  if #before > 0 then call('LTRIM', done, #before, -1) end
  before[#before + 1] = entry
  for i = #before, 1, -1 do call('LPUSH', done, before[i]) end
end

-- A finished instance stands in the index of its status.
function actions.done()
  local r = try('HMGET', key, 'run', 'status', 'finished_at', 'times')
  if r.err then return foreign(r) and 'changed' end
  if r[1] ~= ARGV[6] or r[2] ~= ARGV[7] or ended_at(r[3], r[4]) ~= ARGV[8] then return 'changed' end
  for _, from in ipairs({ -1, 1 }) do
    if call('LPOS', KEYS[4], ARGV[9], 'RANK', from, 'MAXLEN', FAR) then return 'well' end
  end
  return ill(function() insert(KEYS[4], ARGV[9], tonumber(ARGV[8])) end)
end

-- What stands in an index of finished instances and belongs into none, or into another one.
function actions.undone()
  if not call('LPOS', KEYS[4], ARGV[6]) then return 'well' end
  return ill(function() call('LREM', KEYS[4], 1, ARGV[6]) end)
end

-- A claim key has an owner: the task runs with this fence; or it goes by itself, within the time that was asked for.
function actions.hold()
  local value = call('GET', KEYS[4])
  if value ~= ARGV[6] then return value and 'changed' or 'well' end
  local r = try('HMGET', key, 'run', ARGV[7])
  if r.err then r = foreign(r) and {} end
  local owner, run, attempt, nonce, asked = string.match(value, '^(%S+) (%S+) (%d+) (%S+) (%d+)$')
  local state, number, own, _, _, worker = fields(r[2])
  local left, ttl = call('PTTL', KEYS[4]), tonumber(asked)
  if left >= 0 and ttl and left <= ttl then return 'well' end
  if state == 'running' and run == r[1] and number == attempt and own == nonce and worker == owner then
    if left >= 0 then return 'well' end
    return ill(function() call('PEXPIRE', KEYS[4], asked) end)
  end
  return ill(function() call('DEL', KEYS[4]) end)
end

-- What belongs to an instance that is not there.
function actions.orphan()
  if call('EXISTS', key) == 1 or call('EXISTS', KEYS[4]) == 0 then return 'well' end
  return ill(function() call('UNLINK', KEYS[4]) end)
end

-- A ready list that has entries is one of those that are known.
function actions.listed()
  if call('LLEN', KEYS[4]) == 0 or call('SISMEMBER', KEYS[5], ARGV[5]) == 1 then return 'well' end
  return ill(function()
    call('SADD', KEYS[5], ARGV[5])
    wake(ctx, KEYS[6], KEYS[1], 1)
  end)
end


-- start: absent → live, the first nodes ready or delayed. Items apply one after another, each whole.
-- KEYS     1 seq counter · 2 delayed zset · 3 keeper string · 4 woken zset · 5 lists set
--          then for each list: ready list, idle zset; then for each item: instance hash, errors list, parked list
-- DERIVED  {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix `{ns:p}:` · 2 publish command · 3 lists · 4 items · then the names of the lists
--          item: run, policy, id, begin at (ms since 1970, or empty), begin after (ms), follow-ups, fields,
--          then the snapshot's fields and values, then for each follow-up: list (from 1), entry, delay (ms)
-- RETURNS  for each item started | superseded | unreadable | {exists, run, status} | {existing, run, status} |
--          {format, version}
-- COST     O(items): EXISTS, HSET, and one RPUSH or ZADD for each follow-up
-- CALLED   RedisStore::start
local NOTHING, ctx = {}, begin(ARGV[1], ARGV[2])
local lists, items = tonumber(ARGV[3]), tonumber(ARGV[4])
local a, k, replies, pushed, touched = 5 + lists, 6 + 2 * lists, {}, {}, false

-- What the policy says about an instance that is there; nothing means: replace it.
local function taken(policy, run, status, version)
  if policy == 'use-existing' then return { 'existing', run, status } end
  if policy == 'fail' or (policy == 'replace-finished' and status == 'running') then
    return { 'exists', run, status }
  end
  if version ~= '1' then return { 'format', version or '' } end
end

local function clear(old, key, id, errors, parked)
  if old[2] == 'running' then
    local tail = sub(old[1], -12)
    close(ctx, key, id, tail)
    event(ctx, id, old[1], 'terminated')
    tell(ctx, old[5], id, tail)
  end
  call('UNLINK', key, errors, parked)
  local replaced = old[1] .. (old[3] and ' ' .. old[3] or '')
  call('HSET', key, 'replaced', sub(replaced, 1, REPLACED))
end

for i = 1, items do
  local key, errors, parked = KEYS[k], KEYS[k + 1], KEYS[k + 2]
  local run, policy, id, at, after = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4])
  local follows, count, first = tonumber(ARGV[a + 5]), tonumber(ARGV[a + 6]), a + 7
  local old, reply = NOTHING, nil
  if call('EXISTS', key) == 1 then old = try('HMGET', key, 'run', 'status', 'replaced', 'v', 'waiter') end
  k, a = k + 3, first + count + 3 * follows
  if old.err then
    reply = foreign(old) and 'unreadable'
  elseif old[1] == run then
    reply = 'started'
  elseif old[3] and find(old[3], run, 1, true) then
    reply = 'superseded'
  elseif old[1] then
    reply = taken(policy, old[1], old[2], old[4])
  elseif old[4] then
    reply = 'unreadable'
  end
  if not reply then
    reply = 'started'
    if not touched then
      call('INCR', KEYS[1])
      touched = true
    end
    if old[1] then clear(old, key, id, errors, parked) end
    call('HSET', key, 'created_at', ctx.at, unpack(ARGV, first, first + count - 1))
    local base = at ~= '' and math.max(0, tonumber(at) - ctx.now) or after
    for f = first + count, a - 1, 3 do
      local list, entry, wait = tonumber(ARGV[f]), ARGV[f + 1], base + tonumber(ARGV[f + 2])
      if wait > 0 then
        delay(ctx, KEYS[2], ctx.now + wait, ARGV[4 + list] .. '\0' .. entry)
      else
        if at ~= '' then
          local _, task = parse(entry, 1)
          call('HSET', key, 'task:' .. task, 'ready 0 - 0 0 - -')
        end
        call('RPUSH', KEYS[4 + 2 * list], entry)
        pushed[list] = (pushed[list] or 0) + 1
      end
    end
  end
  replies[i] = reply
end
for list, count in pairs(pushed) do
  call('SADD', KEYS[5], ARGV[4 + list])
  wake(ctx, KEYS[5 + 2 * list], KEYS[4], count)
end
timer(ctx, KEYS[2], KEYS[3])
send(ctx)
return replies

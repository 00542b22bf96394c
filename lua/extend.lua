-- extend: running → running, and the worker's presence, which is set first.
-- KEYS     1 woken zset · 2 worker:<worker> string · then for each item: instance hash, claim string
-- DERIVED  none
-- ARGV     1 worker · 2 TTL (ms) · then for each item: field `task:<t>`, run, record as claimed,
--          deadline plus grace (ms since 1970, or empty), value of the claim key
-- RETURNS  for each item ok | lost | cancelled
-- COST     O(items): HMGET and PEXPIRE for each; a SET where the key expired while nobody reaped it
-- CALLED   RedisStore::extend
local ctx, ttl, replies = begin(), tonumber(ARGV[2]), {}

local function extend(key, claim, a)
  local r = try('HMGET', key, 'run', 'status', ARGV[a])
  if r.err then return foreign(r) and 'lost' end
  if r[1] ~= ARGV[a + 1] then return 'lost' end
  if r[2] ~= 'running' and r[2] ~= 'paused' then return 'cancelled' end
  if r[3] ~= ARGV[a + 2] then return 'lost' end
  local hold = ttl
  if ARGV[a + 3] ~= '' then hold = math.min(hold, tonumber(ARGV[a + 3]) - ctx.now) end
  if hold > 0 and call('PEXPIRE', claim, text(hold)) == 0 then
    call('SET', claim, ARGV[a + 4], 'PX', text(hold))
  end
  return 'ok'
end

call('ZREM', KEYS[1], ARGV[1])
call('SET', KEYS[2], ARGV[2], 'PX', ARGV[2])
for i = 1, (#KEYS - 2) / 2 do replies[i] = extend(KEYS[1 + 2 * i], KEYS[2 + 2 * i], 5 * i - 2) end
return replies

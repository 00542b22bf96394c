-- probe: touches each kind of key, command and channel once, so that a missing right shows at connect and not half-way
-- through a transition. Leaves nothing behind; `!probe` is no id that a user may choose.
-- KEYS     1 woken zset · 2 meta hash · 3 seq counter · 4 running zset · 5 delayed zset · 6 keeper string · 7 aside hash
--          8 lists set · 9 paused set · 10 last:<worker> string · 11 worker:<worker> string · 12 instance hash
--          13 claim string · 14 errors list · 15 parked list · 16 ready list · 17 idle zset · 18 done list · 19 waiting set
-- DERIVED  {p}mail:!probe and {p}events (channels)
-- ARGV     1 prefix · 2 publish command
-- RETURNS  ok | {missing, command, key or channel, what the server said}
-- COST     O(1)
-- CALLED   RedisStore::connect, once for each partition
local ctx, probe = begin(ARGV[1], ARGV[2]), '!probe'
local missing

-- Runs a command unless one failed before; a missing right is an answer, everything else is raised.
local function may(command, key, ...)
  local reply = not missing and try(command, key, ...)
  local said = type(reply) == 'table' and reply.err
  if not said then return end
  -- Not "user" alone: before 7.0 every error of a script names `@user_script`.
  if find(said, 'executing the script', 1, true) or find(said, 'NOPERM', 1, true) or find(said, 'ACL failure', 1, true) then
    missing = { 'missing', command, key, said }
  else
    error(said, 0)
  end
end

may('ZREM', KEYS[1], probe)
for i = 1, #KEYS do may('EXISTS', KEYS[i]) end
for _, i in ipairs({ 4, 5, 17 }) do may('ZREM', KEYS[i], probe) end
for _, i in ipairs({ 14, 15, 16, 18 }) do may('LTRIM', KEYS[i], 0, -1) end
may('INCR', KEYS[3])
may('HGET', KEYS[2], 'epoch')
may('HMGET', KEYS[7], probe)
may('GET', KEYS[6])
for _, i in ipairs({ 8, 9, 19 }) do may('SREM', KEYS[i], probe) end
may('DEL', KEYS[10], KEYS[11], KEYS[13])
may('UNLINK', KEYS[12])
may('SADD', KEYS[8], probe)
may('SREM', KEYS[8], probe)
may('SET', KEYS[13], probe, 'PX', 1000)
may('PEXPIRE', KEYS[13], 1000)
may('PTTL', KEYS[13])
may('DEL', KEYS[13])
may('HSET', KEYS[12], 'v', 1)
may('HMGET', KEYS[12], 'v')
may('HEXISTS', KEYS[12], 'v')
may('HKEYS', KEYS[12])
may('HDEL', KEYS[12], probe)
may('UNLINK', KEYS[12])
may('LPUSH', KEYS[16], probe)
may('RPUSH', KEYS[16], probe)
may('LRANGE', KEYS[16], 0, 0)
may('LLEN', KEYS[16])
may('LPOS', KEYS[16], probe, 'RANK', 1, 'MAXLEN', 1)
may('LREM', KEYS[16], 1, probe)
may('DEL', KEYS[16])
may('ZADD', KEYS[17], ctx.at, probe)
may('ZSCORE', KEYS[17], probe)
may('ZRANGE', KEYS[17], 0, 0)
may('ZRANGEBYSCORE', KEYS[17], '-inf', 0, 'LIMIT', 0, 1)
may('ZPOPMAX', KEYS[17], 1)
-- What is used outside of scripts, too.
may('HSETNX', KEYS[12], 'v', 1)
may('HINCRBY', KEYS[12], 'v', 1)
may('HSTRLEN', KEYS[12], 'v')
may('HGETALL', KEYS[12])
may('UNLINK', KEYS[12])
may('HLEN', KEYS[7])
may('SMEMBERS', KEYS[14])
may('SCARD', KEYS[14])
may('SSCAN', KEYS[14], 0)
may('LINDEX', KEYS[14], 0)
may('ZCARD', KEYS[17])
may('ZCOUNT', KEYS[17], 0, 0)
may('ZSCAN', KEYS[17], 0)
may(ARGV[2], ctx.prefix .. 'mail:' .. probe, 'probe')
may(ARGV[2], ctx.prefix .. 'events', '')
if missing then try('UNLINK', KEYS[12], KEYS[13], KEYS[16], KEYS[17]) end
return missing or 'ok'

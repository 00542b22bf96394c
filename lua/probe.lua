-- probe: touches each kind of key, command and channel once, so that a missing right shows at connect and not half-way
-- through a transition. Leaves nothing behind; `!probe` is no id that a user may choose.
-- KEYS     1 woken zset · 2 meta hash · 3 seq counter · 4 running zset · 5 delayed zset · 6 keeper string · 7 aside hash
--          8 lists set · 9 last:<worker> string · 10 worker:<worker> string · 11 instance hash · 12 claim string
--          13 errors list · 14 parked list · 15 ready list · 16 idle zset · 17 done list
-- DERIVED  {p}mail:!probe and {p}events (channels)
-- ARGV     1 prefix · 2 publish command
-- RETURNS  ok
-- COST     O(1)
-- CALLED   RedisStore::connect, once for each partition
local ctx, probe = begin(ARGV[1], ARGV[2]), '!probe'
call('ZREM', KEYS[1], probe)
for i = 1, #KEYS do call('EXISTS', KEYS[i]) end
for _, i in ipairs({ 4, 5, 16 }) do call('ZREM', KEYS[i], probe) end
for _, i in ipairs({ 13, 14, 15, 17 }) do call('LTRIM', KEYS[i], 0, -1) end
call('INCR', KEYS[3])
call('HGET', KEYS[2], 'epoch')
call('HMGET', KEYS[7], probe)
call('GET', KEYS[6])
call('SADD', KEYS[8], probe)
call('SREM', KEYS[8], probe)
call('SET', KEYS[12], probe, 'PX', 1000)
call('PEXPIRE', KEYS[12], 1000)
call('PTTL', KEYS[12])
call('DEL', KEYS[9], KEYS[10], KEYS[12])
call('HSET', KEYS[11], 'v', 1)
call('HMGET', KEYS[11], 'v')
call('HKEYS', KEYS[11])
call('UNLINK', KEYS[11])
call('RPUSH', KEYS[15], probe)
call('LPUSH', KEYS[15], probe)
call('LRANGE', KEYS[15], 0, 0)
call('LLEN', KEYS[15])
call('DEL', KEYS[15])
call('ZADD', KEYS[16], ctx.at, probe)
call('ZRANGE', KEYS[16], 0, 0)
call('ZRANGEBYSCORE', KEYS[16], '-inf', 0, 'LIMIT', 0, 1)
call('ZPOPMAX', KEYS[16], 1)
call(ARGV[2], ctx.prefix .. 'mail:' .. probe, 'probe')
call(ARGV[2], ctx.prefix .. 'events', '')
return 'ok'

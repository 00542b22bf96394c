-- announce: a worker says what it is and does, for people; nothing depends on it.
-- KEYS     1 {ns}:worker:<id> hash · 2 {ns}:workers zset, scored by when each is silent for too long
-- DERIVED  none
-- ARGV     1 worker · 2 TTL (ms; 0: it leaves) · 3 uptime (ms) · then fields and values
-- RETURNS  announced | left
-- COST     O(fields); at most 16 silent workers are forgotten
-- CALLED   RedisStore::announce
local ctx, ttl = begin(), tonumber(ARGV[2])
call('ZREM', KEYS[2], ARGV[1], unpack(call('ZRANGEBYSCORE', KEYS[2], '-inf', ctx.at, 'LIMIT', 0, 16)))
call('UNLINK', KEYS[1])
if ttl == 0 then return 'left' end
call('HSET', KEYS[1], 'started_at', text(ctx.now - tonumber(ARGV[3])), 'seen_at', ctx.at, unpack(ARGV, 4))
call('PEXPIRE', KEYS[1], ARGV[2])
call('ZADD', KEYS[2], text(ctx.now + ttl), ARGV[1])
return 'announced'

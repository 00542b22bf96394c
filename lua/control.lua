-- control: live → cancelled or terminated, at once. Entries, timers and claim keys stay and fall when they are met.
-- KEYS     1 seq counter · 2 instance hash · 3 done:<status> list · 4 delayed zset · 5 waiting set
-- DERIVED  {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix · 2 publish command · 3 id · 4 run (empty: whichever is there) · 5 status it leads to
--          6 control record (MessagePack)
-- RETURNS  {not-found} | {replaced, run} | {done, run} | {over, run, status} | {unreadable} | {format, version}
-- COST     O(tasks of the instance)
-- CALLED   RedisStore::control
local ctx, key, status = begin(ARGV[1], ARGV[2]), KEYS[2], ARGV[5]
local r = try('HMGET', key, 'run', 'status', 'waiter', 'v')
if r.err then return foreign(r) and { 'unreadable' } end
local run = r[1]
if not run and not r[4] then return { 'not-found' } end
if not run then return { 'unreadable' } end
if ARGV[4] ~= '' and ARGV[4] ~= run then return { 'replaced', run } end
if r[4] ~= '1' then return { 'format', r[4] or '' } end
if r[2] == status and ARGV[4] ~= '' then return { 'done', run } end
if r[2] ~= 'running' then return { 'over', run, r[2] } end
call('INCR', KEYS[1])
close(ctx, key, ARGV[3], sub(run, -12))
call('HSET', key, 'status', status, 'finished_at', ctx.at, 'control', ARGV[6])
ended(ctx, KEYS[3], ARGV[3], run, status, r[3])
send(ctx)
return { 'done', run }

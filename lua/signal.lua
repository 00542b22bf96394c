-- signal: waiting → ready, or kept until a node waits. The oldest node that waits for the name has its value and is
-- ready for an engine to go on from it; who sends needs nothing but the id of the instance and the name.
-- KEYS     1 seq counter · 2 instance hash · 3 waiting set · 4 delayed zset · 5 woken zset · 6 lists set · 7 meta hash
-- DERIVED  {p}ready:<list> · {p}idle:<list> · {p}mail:<mailbox> (channel)
-- ARGV     1 prefix · 2 publish command · 3 guard: 1 on a cluster · 4 instance id · 5 run (empty: whichever is there)
--          6 name · 7 id of the signal: the same in a repeat · 8 payload (MessagePack)
-- RETURNS  {not-found} | {replaced, run} | {accepted, run} | {over, run, status} | {not-awaited, names} | {full} |
--          {unreadable} | {format, version}
-- COST     O(1), and the length of the texts `heard`, `waits` and `signals`
-- CALLED   RedisStore::signal
local HEARD, EARLY = 65536, 1000
local ctx, key, id, name, signal, payload = begin(ARGV[1], ARGV[2]), KEYS[2], ARGV[4], ARGV[6], ARGV[7], ARGV[8]

local function has(words, word) return find((words or '') .. ' ', ' ' .. word .. ' ', 1, true) end

local r = try('HMGET', key, 'run', 'status', 'v', 'awaits', 'heard', 'waits', 'signals', 'signal:' .. signal)
if r.err then return foreign(r) and { 'unreadable' } end
local run, heard, signals = r[1], (r[5] or '') .. ' ' .. signal, r[7] or ''
if not run and not r[3] then return { 'not-found' } end
if not run then return { 'unreadable' } end
if ARGV[5] ~= '' and ARGV[5] ~= run then return { 'replaced', run } end
if r[3] ~= '1' then return { 'format', r[3] or '' } end
if r[8] or has(r[5], signal) then return { 'accepted', run } end
if r[2] ~= 'running' and r[2] ~= 'paused' then return { 'over', run, r[2] } end
if not has(r[4], name) then return { 'not-awaited', r[4] or '' } end
local wait, waits = pick(r[6] or '', name)
if not wait and select(2, string.gsub(signals, ' ', '')) >= EARLY then return { 'full' } end
if #heard > HEARD then
  local oldest = find(heard, ' ', #heard - HEARD + 1, true)
  heard = sub(heard, oldest)
end

-- The node that waited is ready in its list, with the payload as its value.
local function deliver()
  local at = find(wait, '=', 1, true)
  local task, list = sub(wait, 1, at - 1), sub(wait, at + 1)
  local ready, idle = ctx.prefix .. 'ready:' .. list, ctx.prefix .. 'idle:' .. list
  if ARGV[3] == '1' then here(KEYS[7], { KEYS[1], key, KEYS[3], KEYS[4], KEYS[5], KEYS[6], ready, idle }) end
  local start, record = table.concat({ id, task, sub(run, -12) }, '\0'), call('HGET', key, 'task:' .. task) or ''
  local set = { 'heard', heard, 'out:' .. task, payload, 'waits', waits }
  if sub(record, 1, 8) == 'waiting ' then set[7], set[8] = 'task:' .. task, 'ready' .. sub(record, 8) end
  call('INCR', KEYS[1])
  call('HSET', key, unpack(set))
  if waits == '' then
    call('HDEL', key, 'waits')
    call('SREM', KEYS[3], id)
  end
  call('ZREM', KEYS[4], overdue(list, start, task))
  call('RPUSH', ready, start .. 'out:' .. task .. ' ' .. #payload)
  call('SADD', KEYS[6], list)
  wake(ctx, idle, KEYS[5], 1)
end

if wait then
  deliver()
else
  call('INCR', KEYS[1])
  call('HSET', key, 'heard', heard, 'signals', signals .. ' ' .. name .. '=' .. signal, 'signal:' .. signal, payload)
end
send(ctx)
return { 'accepted', run }

-- control: live → cancelled, terminated, paused; paused → running; failed → running; over → gone. The status changes at
-- once: entries, timers and claim keys stay, and fall or are parked when they are met.
-- KEYS     1 meta hash · 2 woken zset · 3 seq counter · 4 instance hash · 5 errors list · 6 parked list · 7 paused set
--          8 lists set · 9 delayed zset · 10 keeper string · 11 waiting set
-- DERIVED  {p}done:<status> · {p}ready:<list> · {p}idle:<list> · {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix · 2 publish command · 3 guard: 1 on a cluster · 4 cancel | terminate | pause | resume | retry | delete
--          5 id · 6 run (empty: whichever is there) · 7 nonce · 8 control record (MessagePack)
--          9 status it leads to (empty: none) · 10 most tickets that a resume gives back
--          retry: 11 died at (ms since 1970) · 12 again · 13 go on · 14 clear · 15 joins; then for each that begins
--          again: task, list, entry, delay (ms); for each that goes on: task, list, entry; tasks to clear; for each
--          join: task, how many have still arrived, their names
-- RETURNS  {not-found} | {replaced, run} | {done, run} | {again, run} | {over, run, status} | {already-paused, run} |
--          {live, run, status} | {changed, run} | {unreadable} | {format, version}
-- COST     O(tasks of the instance); resume: O(tickets given back)
-- CALLED   RedisStore::control, RedisStore::retry
local function stop(to)
  close(ctx, key, id, sub(run, -12))
  call('HSET', key, 'status', to, 'finished_at', ctx.at, 'control', ARGV[8], 'controlled', ARGV[7])
  ended(ctx, prefix .. 'done:' .. to, id, run, status, to, waiter)
end

local function pause()
  call('HSET', key, 'status', 'paused', 'control', ARGV[8], 'controlled', ARGV[7])
  call('SADD', KEYS[7], id)
  event(ctx, id, run, 'running', 'paused')
end

local function delete()
  unlist(prefix .. 'done:' .. status, finished)
  call('UNLINK', key, KEYS[5], KEYS[6])
end

-- Gives parked tickets back to their lists, in the order in which they were met.
local function resume()
  local parked = call('LRANGE', KEYS[6], 0, ARGV[10] - 1)
  for _, ticket in ipairs(parked) do
    local list, entry = unticket(ticket)
    if list then push(list, entry) end
  end
  check(lists)
  fill()
  call('LTRIM', KEYS[6], #parked, -1)
  if status == 'paused' then
    call('HSET', key, 'status', 'running', 'control', ARGV[8])
    call('HDEL', key, 'error')
    call('SREM', KEYS[7], id)
    event(ctx, id, run, 'paused', 'running')
  end
  return call('LLEN', KEYS[6]) > 0 and 'again' or 'done'
end

local function steer()
  local lives, to = status == 'running' or status == 'paused', ARGV[9]
  if action == 'delete' or action == 'retry' then
    if lives then return { 'live', run, status } end
    if action == 'retry' and status ~= 'failed' then return { 'over', run, status } end
    if action == 'retry' and finished ~= ARGV[11] then return { 'changed', run } end
  elseif (action == 'cancel' or action == 'terminate') and status == to and ARGV[6] ~= '' then
    return { 'done', run }
  elseif not lives then
    return { 'over', run, status }
  elseif action == 'pause' and status == 'paused' then
    return { 'already-paused', run }
  end
  call('ZREM', KEYS[2], '')
  local reply = 'done'
  if action == 'resume' then
    reply = resume()
  elseif action == 'retry' then
    retry()
  else
    check({}, prefix .. 'done:' .. (to == '' and status or to))
    if action == 'delete' then delete() elseif action == 'pause' then pause() else stop(to) end
  end
  call('INCR', KEYS[3])
  for list, entries in pairs(lists) do wake(ctx, prefix .. 'idle:' .. list, KEYS[2], #entries) end
  timer(ctx, KEYS[9], KEYS[10])
  send(ctx)
  return { reply, run }
end

local r = try('HMGET', key, 'run', 'status', 'waiter', 'v', 'controlled', 'finished_at', 'retries', 'times')
if r.err then return foreign(r) and { 'unreadable' } end
run, status, waiter, finished, retries = r[1], r[2], r[3], ended_at(r[6], r[8]), tonumber(r[7] or 0)
if not run and not r[4] then return { 'not-found' } end
if not run then return { 'unreadable' } end
if ARGV[6] ~= '' and ARGV[6] ~= run then return { 'replaced', run } end
if r[4] ~= '1' then return { 'format', r[4] or '' } end
if r[5] == ARGV[7] then return { 'done', run } end
return steer()

-- tick: due → ready; expired → ready, delayed or dead; old → gone. The keeper's promote, reap and prune, each bounded.
-- KEYS     1 meta hash · 2 woken zset · 3 seq counter · 4 running zset · 5 delayed zset · 6 keeper string
--          7 aside hash · 8, 9, 10, 11 done:completed, :failed, :cancelled, :terminated lists · 12 lists set
--          13 waiting set · 14 paused set
-- DERIVED  {p}ready:<list> · {p}idle:<list> · {p}instance:<id> · {p}claim:<id>:<task> · {p}errors:<id> · {p}parked:<id>
--          {p}worker:<worker> · {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix · 2 publish command · 3 guard: 1 on a cluster · 4 worker (empty: no keeper) · 5 keeper TTL (ms)
--          6 expected time (ms since 1970, or empty) · 7 promote · 8 reap · 9 prune (most items) · 10 crash delay (ms)
--          11 claim TTL (ms) · 12, 13, 14, 15 retention of completed, failed, cancelled, terminated (ms)
-- RETURNS  {now, keeper | other, stepped by (ms, or empty), promoted, pruned, again | done, next due (ms, or empty),
--          recovered}; a recovery: requeued | failed | paused | lost | timed-out, id, task, worker, crashes
-- COST     O(promote + reap + prune)
-- CALLED   RedisStore::tick
local function prune_old()
  local left = prune
  for i = 1, 4 do
    local before, at = ctx.now - math.max(tonumber(ARGV[11 + i]), GRACE), 0
    for _, entry in ipairs(left > 0 and call('LRANGE', KEYS[7 + i], 0, left - 1) or {}) do
      local a = find(entry, '\0', 1, true)
      if a and tonumber(sub(entry, 1, a - 1)) > before then break end
      local id, tail = a and sub(entry, a + 1, -14), sub(entry, -12)
      local key = id and prefix .. 'instance:' .. id
      local r = key and try('HMGET', key, 'v', 'run', 'finished_at', 'times') or {}
      if r.err then foreign(r) end
      -- One that was brought back to life has no such end any more.
      if r[1] == '1' and r[2] and sub(r[2], -12) == tail and ended_at(r[3], r[4]) == sub(entry, 1, a - 1) then
        call('UNLINK', key, prefix .. 'errors:' .. id, prefix .. 'parked:' .. id)
        pruned = pruned + 1
      end
      at = at + 1
    end
    if at > 0 then call('LTRIM', KEYS[7 + i], at, -1) end
    left = left - at
  end
  if left <= 0 then again = 'again' end
end

call('ZREM', KEYS[2], '')
if worker ~= '' then
  local owner = call('GET', KEYS[6])
  if not owner or owner == worker then
    call('SET', KEYS[6], worker, 'PX', ARGV[5])
    role = 'keeper'
  end
end
if ARGV[6] ~= '' then
  local by = ctx.now - tonumber(ARGV[6])
  if math.abs(by) > STEP then stepped, reap, prune = text(by), 0, 0 end
end
if promote > 0 then promote_due() end
if reap > 0 then reap_expired() end
if prune > 0 then prune_old() end
if promoted + pruned + #recovered > 0 then call('INCR', KEYS[3]) end
for _, member in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', text(ctx.now - WOKEN), 'LIMIT', 0, 8)) do
  call('ZREM', KEYS[2], member)
  hint(ctx, member, 'ready')
end
for _, lists in ipairs({ tails, heads }) do
  for list, entries in pairs(lists) do
    call('SADD', KEYS[12], list)
    wake(ctx, prefix .. 'idle:' .. list, KEYS[2], #entries)
  end
end
timer(ctx, KEYS[5], KEYS[6])
send(ctx)
local head = call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
return { ctx.at, role, stepped, promoted, pruned, again, head[2] or '', recovered }

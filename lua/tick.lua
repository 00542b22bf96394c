-- tick: due → ready; expired → ready, delayed or dead; old → gone. The keeper's promote, reap and prune, each bounded.
-- KEYS     1 meta hash · 2 woken zset · 3 seq counter · 4 running zset · 5 delayed zset · 6 keeper string
--          7 aside hash · 8, 9, 10, 11 done:completed, :failed, :cancelled, :terminated lists · 12 lists set
-- DERIVED  {p}ready:<list> · {p}idle:<list> · {p}instance:<id> · {p}claim:<id>:<task> · {p}errors:<id> · {p}parked:<id>
--          {p}worker:<worker> · {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix · 2 publish command · 3 guard: 1 on a cluster · 4 worker (empty: no keeper) · 5 keeper TTL (ms)
--          6 expected time (ms since 1970, or empty) · 7 promote · 8 reap · 9 prune (most items) · 10 crash delay (ms)
--          11 claim TTL (ms) · 12, 13, 14, 15 retention of completed, failed, cancelled, terminated (ms)
-- RETURNS  {now, keeper | other, stepped by (ms, or empty), promoted, pruned, again | done, next due (ms, or empty),
--          recovered}; a recovery: requeued | failed | lost | timed-out, id, task, worker, crashes
-- COST     O(promote + reap + prune)
-- CALLED   RedisStore::tick
local STEP, LOOK, SLACK, SLOWEST, WOKEN, GRACE = 2000, 5000, 1000, 60000, 1000, 60000
local prefix, worker, guard = ARGV[1], ARGV[4], ARGV[3] == '1'
local promote, reap, prune = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local ctx, role, stepped, recovered = begin(ARGV[1], ARGV[2]), 'other', '', {}
local promoted, pruned, again, heads, tails, scores = 0, 0, 'done', {}, {}, {}

-- A ticket with what the snapshot says of it. `gone`: nothing (any more) belongs to it.
local function look(ticket)
  local list, entry, id, task, tail = unticket(ticket)
  if not id then return { ticket = ticket, unreadable = 'the ticket cannot be read' } end
  local t = { ticket = ticket, list = list, entry = entry, id = id, task = task, name = 'task:' .. task }
  t.key, t.claim = prefix .. 'instance:' .. id, prefix .. 'claim:' .. id .. ':' .. task
  local r = try('HMGET', t.key, 'v', 'run', 'status', t.name, 'max_crashes', 'waiter')
  if r.err then
    t.unreadable = foreign(r) and 'the key does not hold a snapshot'
  elseif not r[1] and not r[2] then
    t.gone = true
  elseif r[1] ~= '1' then
    t.unreadable = 'unknown format ' .. (r[1] or '')
  elseif not r[2] then
    t.unreadable = 'the snapshot has no run'
  elseif sub(r[2], -12) ~= tail or r[3] ~= 'running' or not r[4] then
    t.gone = true
  else
    t.run, t.record, t.tail, t.most, t.waiter = r[2], r[4], tail, tonumber(r[5]) or 0, r[6]
    t.state, t.attempt, t.nonce, t.failures, t.crashes, t.worker, t.deadline = fields(r[4])
    if not t.state then t.unreadable = 'the task record cannot be read' end
  end
  return t
end

local function look_all(tickets, step)
  local all, keys = {}, { KEYS[4], KEYS[5], KEYS[7] }
  for i = 1, #tickets, step do
    local t = look(tickets[i])
    all[#all + 1] = t
    if guard and t.key then
      keys[#keys + 1], keys[#keys + 2] = t.key, t.claim
      keys[#keys + 1], keys[#keys + 2] = prefix .. 'ready:' .. t.list, prefix .. 'idle:' .. t.list
      keys[#keys + 1], keys[#keys + 2] = prefix .. 'errors:' .. t.id, prefix .. 'worker:' .. (t.worker or '-')
    end
  end
  if guard then here(KEYS[1], keys) end
  return all
end

local function push(lists, t, entry)
  local entries = lists[t.list] or {}
  lists[t.list], entries[#entries + 1] = entries, entry
end

local function set_aside(t) call('HSET', KEYS[7], t.ticket, t.unreadable) end

-- Entries go into their lists first: one whose record is not ready yet is dropped, and its ticket comes again.
local function flush(command, lists)
  for list, entries in pairs(lists) do
    for i = 1, #entries, 4000 do
      call(command, prefix .. 'ready:' .. list, unpack(entries, i, math.min(i + 3999, #entries)))
    end
  end
end

local function done_with(key, members)
  if #members > 0 then call('ZREM', key, unpack(members)) end
end

local function promote_due()
  local due = call('ZRANGEBYSCORE', KEYS[5], '-inf', ctx.at, 'LIMIT', 0, promote)
  if #due == promote then again = 'again' end
  local all, gone = look_all(due, 1), {}
  for _, t in ipairs(all) do
    gone[#gone + 1] = t.ticket
    if not t.list then set_aside(t) elseif t.unreadable or t.state == 'delayed' then push(tails, t, t.entry) end
  end
  flush('RPUSH', tails)
  for _, t in ipairs(all) do
    if t.state == 'delayed' and not t.unreadable then
      call('HSET', t.key, t.name, 'ready' .. sub(t.record, 8))
      promoted = promoted + 1
    end
  end
  done_with(KEYS[5], gone)
end

local function score(at, ticket)
  scores[#scores + 1], scores[#scores + 2] = at, ticket
end

-- A claim key that is there: when to look again. One that outlives what its owner asked for (the clock was set back)
-- is cut.
local function alive(claim, left, ticket)
  if left > tonumber(ARGV[11]) then
    local asked = tonumber(string.match(call('GET', claim) or '', ' (%d+)$'))
    if asked and left > asked then
      call('PEXPIRE', claim, asked)
      left = asked
    end
  end
  score(text(ctx.now + math.min(LOOK, left + 1)), ticket)
end

local function recover(t, what, crashes)
  for _, value in ipairs({ what, t.id, t.task, t.worker, crashes or 0 }) do recovered[#recovered + 1] = value end
end

local function error_of(t)
  return cmsgpack.pack({ kind = 'crash', task = t.task, attempt = tonumber(t.attempt), message = 'worker lease expired',
    worker = t.worker, at = ctx.now })
end

local function dead(t, crashes)
  local record = error_of(t)
  call('HSET', t.key, t.name, 'failed ' .. t.attempt .. ' - ' .. t.failures .. ' ' .. crashes .. ' - -',
    'status', 'failed', 'finished_at', ctx.at, 'error', record)
  close(ctx, t.key, t.id, t.tail, t.name)
  keep(prefix .. 'errors:' .. t.id, record)
  ended(ctx, KEYS[9], t.id, t.run, 'failed', t.waiter, 'worker lease expired')
  recover(t, 'failed', crashes)
end

-- The claim key is gone. Decides what becomes of the task: its next record, and whether it waits.
local function expired(t, doubt)
  local crashes, wait, what, entry = tonumber(t.crashes), 0, 'lost', t.entry
  if t.deadline ~= '-' and tonumber(t.deadline) <= ctx.now then
    local at = #entry - #select(4, parse(entry, 1)) + 1
    what = 'timed-out'
    if sub(entry, at, at) ~= '!' then entry = sub(entry, 1, at - 1) .. '!' .. sub(entry, at) end
  else
    local presence = call('GET', prefix .. 'worker:' .. t.worker)
    if presence and not doubt then
      return score(string.format('%.1f', ctx.now + math.min(LOOK, math.floor(presence / 2)) + 0.5), t.ticket)
    end
    if not presence then
      what, crashes = 'requeued', crashes + 1
      if crashes > t.most then
        t.dead = crashes
        return t
      end
      if crashes > 1 then wait = math.min(ARGV[10] * 2 ^ (crashes - 2), SLOWEST) end
    end
  end
  t.what, t.total, t.wait = what, crashes, wait
  t.next = ' ' .. t.attempt .. ' - ' .. t.failures .. ' ' .. crashes .. ' - -'
  if wait == 0 then push(heads, t, entry) end
  return t
end

local function reap_expired()
  local due, tickets, gone, taken = call('ZRANGEBYSCORE', KEYS[4], '-inf', ctx.at, 'LIMIT', 0, reap, 'WITHSCORES'), {}, {}, {}
  if #due == 2 * reap then again = 'again' end
  for i = 1, #due, 2 do
    local _, _, id, task = unticket(due[i])
    local claim = id and prefix .. 'claim:' .. id .. ':' .. task
    local left = id and call('PTTL', claim) or -2
    if left >= 0 then
      alive(claim, left, due[i])
    else
      tickets[#tickets + 1], tickets[#tickets + 2] = due[i], tonumber(due[i + 1]) % 1 ~= 0
    end
  end
  for i, t in ipairs(look_all(tickets, 2)) do
    if t.unreadable and t.list then
      score(text(ctx.now + LOOK), t.ticket)
    elseif t.state ~= 'running' then
      if t.unreadable then set_aside(t) end
      gone[#gone + 1] = t.ticket
    elseif expired(t, tickets[2 * i]) then
      gone[#gone + 1], taken[#taken + 1] = t.ticket, t
    end
  end
  flush('LPUSH', heads)
  local over = {}
  for _, t in ipairs(taken) do
    if t.dead and not over[t.key] then
      over[t.key] = true
      dead(t, t.dead)
    elseif not over[t.key] then
      if t.wait > 0 then delay(ctx, KEYS[5], ctx.now + t.wait, t.ticket) end
      call('HSET', t.key, t.name, (t.wait > 0 and 'delayed' or 'ready') .. t.next)
      if t.what == 'requeued' then keep(prefix .. 'errors:' .. t.id, error_of(t)) end
      recover(t, t.what, t.total)
    end
  end
  for _, ticket in ipairs(call('ZRANGEBYSCORE', KEYS[4], text(ctx.now + LOOK + SLACK + 1), '+inf', 'LIMIT', 0, reap)) do
    score(ctx.at, ticket)
  end
  if #scores > 0 then call('ZADD', KEYS[4], unpack(scores)) end
  done_with(KEYS[4], gone)
end

local function prune_old()
  local left = prune
  for i = 1, 4 do
    local before, at = ctx.now - math.max(tonumber(ARGV[11 + i]), GRACE), 0
    for _, entry in ipairs(left > 0 and call('LRANGE', KEYS[7 + i], 0, left - 1) or {}) do
      local a = find(entry, '\0', 1, true)
      if a and tonumber(sub(entry, 1, a - 1)) > before then break end
      local id, tail = a and sub(entry, a + 1, -14), sub(entry, -12)
      local key = id and prefix .. 'instance:' .. id
      local r = key and try('HMGET', key, 'v', 'run', 'status') or {}
      if r.err then foreign(r) end
      if r[1] == '1' and r[2] and sub(r[2], -12) == tail and r[3] ~= 'running' then
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

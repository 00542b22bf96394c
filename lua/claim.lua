-- claim: ready → running, from the heads of the caller's lists, in their order.
-- KEYS     1 meta hash · 2 woken zset · 3 seq counter · 4 running zset · 5 last:<worker> string · 6 aside hash
-- DERIVED  {p}ready:<list> · {p}idle:<list> · {p}instance:<id> · {p}claim:<id>:<task> · {p}mail:<mailbox> (channel)
-- ARGV     1 prefix · 2 publish command · 3 worker · 4 nonce · 5 want · 6 TTL (ms) · 7 parking: never | short | parked
--          8 guard: 1 on a cluster · 9 lists · their names · then for each bounded task: list, task, timeout (ms or
--          empty), deadline (ms or empty)
-- RETURNS  {now, seq, epoch, again | done, parked | free, claims, aside}; a claim: list, entry, run, record,
--          input | none, payload, overall deadline (ms or empty); an aside entry: ticket, reason
-- COST     O(want + dropped); at most want + DROPS entries are looked at: HMGET, ZADD, SET, HSET for each claim
-- CALLED   RedisStore::claim
local DROPS, INPUT, LOOK, AGAIN = 64, 262144, 5000, 60000
local prefix, worker, nonce, want, ttl = ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local lists, ctx = tonumber(ARGV[9]), begin(ARGV[1], ARGV[2])
local claims, aside, last, limits = {}, {}, { nonce }, {}
local budget, left, got, looked, again, parked = INPUT, want + DROPS, 0, 0, 'done', 'free'
local look = text(ctx.now + math.min(tonumber(ttl), LOOK))
local fresh = 'running 1 ' .. nonce .. ' 0 0 ' .. worker .. ' -'

local function answer(list, entry, run, record, input, overall)
  local n = #claims
  claims[n + 1], claims[n + 2], claims[n + 3], claims[n + 4] = list, entry, run, record
  claims[n + 5], claims[n + 6], claims[n + 7] = input and 'input' or 'none', input or '', overall or ''
  got = got + 1
  last[#last + 1] = list .. '\0' .. entry
  if input then budget = budget - #input end
end

local function unreadable(list, entry, reason)
  local ticket = list .. '\0' .. entry
  call('HSET', KEYS[6], ticket, reason)
  aside[#aside + 1] = ticket
  aside[#aside + 1] = reason
end

-- Takes one entry, or drops it: it is only a hint, the snapshot decides.
local function take(list, entry, again_only)
  local id, task, tail, ref = parse(entry, 1)
  if not id then return unreadable(list, entry, 'the entry cannot be read') end
  local key, name, limit = prefix .. 'instance:' .. id, 'task:' .. task, limits[list] and limits[list][task]
  local space = find(ref, ' ', 1, true)
  local size = space and tonumber(sub(ref, space + 1))
  local input = size and size <= budget and sub(ref, sub(ref, 1, 1) == '!' and 2 or 1, space - 1) or 'v'
  local r = try('HMGET', key, 'v', 'run', 'status', name, 'started_at', input, limit and 'due:' .. task or 'v')
  if r.err then return foreign(r) and unreadable(list, entry, 'the key does not hold a snapshot') end
  local version, run, record = r[1], r[2], r[4]
  if not version and not run then return end
  if version ~= '1' then return unreadable(list, entry, 'unknown format ' .. (version or '')) end
  if not run then return unreadable(list, entry, 'the snapshot has no run') end
  if sub(run, -12) ~= tail or r[3] ~= 'running' or not record then return end
  local payload, due, attempt, deadline = input ~= 'v' and r[6], limit and r[7], 1, '-'
  local running = fresh
  if record ~= 'ready 0 - 0 0 - -' or limit then
    local state, number, held, failures, crashes, owner = fields(record)
    if not state then return unreadable(list, entry, 'the task record cannot be read') end
    if state == 'running' and held == nonce and owner == worker then
      return answer(list, entry, run, record, payload, due)
    end
    if state ~= 'ready' or again_only then return end
    attempt = number + 1
    if limit then
      local ends = limit[1] and ctx.now + limit[1]
      if limit[2] and not due then
        due = text(ctx.now + limit[2])
        call('HSET', key, 'due:' .. task, due)
      end
      if due and (not ends or tonumber(due) < ends) then ends = tonumber(due) end
      deadline = ends and text(ends) or '-'
    end
    running = table.concat({ 'running', attempt, nonce, failures, crashes, worker, deadline }, ' ')
  elseif again_only then
    return
  end
  call('ZADD', KEYS[4], look, list .. '\0' .. entry)
  call('SET', prefix .. 'claim:' .. id .. ':' .. task, worker .. ' ' .. run .. ' ' .. attempt .. ' ' .. nonce .. ' ' .. ttl, 'PX', ttl)
  if r[5] then call('HSET', key, name, running) else call('HSET', key, name, running, 'started_at', ctx.at) end
  answer(list, entry, run, running, payload, due)
end

-- On a cluster everything that may be read or written is looked at first.
local function look_ahead()
  local keys, peek = { unpack(KEYS) }, left
  for i = 1, lists do
    keys[#keys + 1] = prefix .. 'idle:' .. ARGV[9 + i]
    local entries = peek > 0 and call('LRANGE', prefix .. 'ready:' .. ARGV[9 + i], 0, peek - 1) or {}
    for _, entry in ipairs(entries) do
      local id, task = parse(entry, 1)
      if id then
        keys[#keys + 1] = prefix .. 'instance:' .. id
        keys[#keys + 1] = prefix .. 'claim:' .. id .. ':' .. task
      end
    end
    peek = peek - #entries
  end
  here(KEYS[1], keys)
end

local function scan(list)
  local ready, at = prefix .. 'ready:' .. list, 0
  while got < want and left > 0 do
    local count = math.min(want - got, left)
    local entries = call('LRANGE', ready, at, at + count - 1)
    for i = 1, #entries do take(list, entries[i]) end
    at, left = at + #entries, left - #entries
    if #entries < count then break end
  end
  if at > 0 then call('LTRIM', ready, at, -1) end
end

if ARGV[8] == '1' then look_ahead() end
call('ZREM', KEYS[2], worker)
for i = 10 + lists, #ARGV, 4 do
  local list = limits[ARGV[i]] or {}
  limits[ARGV[i]], list[ARGV[i + 1]] = list, { tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]) }
end
local stored = call('GET', KEYS[5])
stored = stored and cmsgpack.unpack(stored)
if stored and stored[1] == nonce then
  for i = 2, #stored do
    local list, entry = unticket(stored[i])
    take(list, entry, true)
  end
else
  for i = 1, lists do
    if want == 0 or (got < want and left > 0) then looked = i end
    scan(ARGV[9 + i])
  end
  if left <= 0 and got < want then again = 'again' end
  if got > 0 then call('SET', KEYS[5], cmsgpack.pack(last), 'PX', AGAIN) end
  for i = 1, lists do
    local idle = prefix .. 'idle:' .. ARGV[9 + i]
    if got == want and ARGV[7] == 'parked' then
      call('ZREM', idle, worker)
    elseif got < want and again == 'done' and ARGV[7] ~= 'never' then
      call('ZADD', idle, ctx.at, worker)
      parked = 'parked'
    end
  end
  if got == want or again == 'again' then
    for i = 1, looked do
      local list = ARGV[9 + i]
      if call('LLEN', prefix .. 'ready:' .. list) > 0 then wake(ctx, prefix .. 'idle:' .. list, KEYS[2], 1) end
    end
  end
end
local seq = got + #aside > 0 and call('INCR', KEYS[3]) or call('GET', KEYS[3])
local epoch = call('HGET', KEYS[1], 'epoch')
send(ctx)
return { ctx.at, seq or '0', epoch or '0', again, parked, claims, aside }

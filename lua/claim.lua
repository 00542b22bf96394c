-- claim: ready → running, from the heads of the caller's lists, in their order.
-- KEYS     1 meta hash · 2 woken zset · 3 seq counter · 4 running zset · 5 last:<worker> string · 6 aside hash
-- DERIVED  {p}ready:<list> · {p}idle:<list> · {p}instance:<id> · {p}claim:<id>:<task> · {p}parked:<id>
--          {p}mail:<mailbox> (channel)
-- ARGV     1 prefix · 2 publish command · 3 worker · 4 nonce · 5 want · 6 TTL (ms) · 7 parking: never | short | parked
--          8 guard: 1 on a cluster · 9 lists · their names · then for each bounded task: list, task, timeout (ms or
--          empty), deadline (ms or empty)
-- RETURNS  {now, seq, epoch, again | done, parked | free, claims, aside}; claims: list, then its claims as one array; a
--          claim: entry, run, record (empty: the first one of a task without bounds), payload (empty: not sent),
--          overall deadline (ms or empty); an aside entry: ticket, reason
-- COST     O(want + dropped); at most want + DROPS entries are looked at: HMGET, SET, HSET for each claim
-- CALLED   RedisStore::claim
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
        keys[#keys + 1] = prefix .. 'parked:' .. id
      end
    end
    peek = peek - #entries
  end
  here(KEYS[1], keys)
end

-- How many entries of each list are done with.
local seen = {}

local function scan(list)
  local ready, at = prefix .. 'ready:' .. list, 0
  while got < want and left > 0 do
    local count = math.min(want - got, left)
    local entries = call('LRANGE', ready, at, at + count - 1)
    for i = 1, #entries do take(list, entries[i]) end
    at, left = at + #entries, left - #entries
    if #entries < count then break end
  end
  seen[ready] = math.max(seen[ready] or 0, at)
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
  for i = 1, lists do scan(ARGV[9 + i]) end
  if left <= 0 and got < want then again = 'again' end
  store()
  for ready, count in pairs(seen) do
    if count > 0 then call('LTRIM', ready, count, -1) end
  end
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
    -- Also for lists that were not looked into: the hint that led here may have been for one of those.
    for i = 1, lists do
      local list = ARGV[9 + i]
      if call('LLEN', prefix .. 'ready:' .. list) > 0 then wake(ctx, prefix .. 'idle:' .. list, KEYS[2], 1) end
    end
  end
end
local seq = got + met + #aside > 0 and call('INCR', KEYS[3]) or call('GET', KEYS[3])
local epoch = call('HGET', KEYS[1], 'epoch')
send(ctx)
return { ctx.at, seq or '0', epoch or '0', again, parked, claims, aside }

-- release: running → ready, at the head of its list; counts neither failure nor crash.
-- KEYS     1 woken zset · 2 seq counter · 3 running zset · 4 worker:<worker> string · 5 keeper string
--          6 lists set; then for each list: ready list, idle zset; then for each item: instance hash, claim string
-- DERIVED  {p}mail:<mailbox> (channel)
-- ARGV     1 prefix · 2 publish command · 3 worker · 4 leave: 1 or 0 · 5 lists · 6 items
--          item: field `task:<t>`, run, record as claimed, record released, list (from 1), entry, ticket,
--          start of the value of the claim key
-- RETURNS  for each item released | lost | cancelled
-- COST     O(items): HMGET, HSET and LPUSH for each; one ZREM and one DEL for all
-- CALLED   RedisStore::release
local ctx, lists, items = begin(ARGV[1], ARGV[2]), tonumber(ARGV[5]), tonumber(ARGV[6])
local replies, pushed, names, tickets, claims = {}, {}, {}, {}, {}

local function release(key, claim, a)
  local r = try('HMGET', key, 'run', 'status', ARGV[a])
  if r.err then return foreign(r) and 'lost' end
  if r[1] ~= ARGV[a + 1] then return 'lost' end
  local lives = r[2] == 'running' or r[2] == 'paused'
  if lives and r[3] == ARGV[a + 2] then
    local list = tonumber(ARGV[a + 4])
    call('HSET', key, ARGV[a], ARGV[a + 3])
    call('LPUSH', KEYS[5 + 2 * list], ARGV[a + 5])
    pushed[list], names[list] = (pushed[list] or 0) + 1, unticket(ARGV[a + 6])
    claims[#claims + 1], tickets[#tickets + 1] = claim, ARGV[a + 6]
    return 'released'
  end
  local held = call('GET', claim)
  if held and find(held, ARGV[a + 7], 1, true) == 1 then claims[#claims + 1] = claim end
  if lives then return 'lost' end
  tickets[#tickets + 1] = ARGV[a + 6]
  return 'cancelled'
end

call('ZREM', KEYS[1], ARGV[3])
for i = items, 1, -1 do
  local k = 6 + 2 * lists + 2 * (i - 1)
  replies[i] = release(KEYS[k + 1], KEYS[k + 2], 7 + 8 * (i - 1))
end
if #tickets > 0 then call('ZREM', KEYS[3], unpack(tickets)) end
if #claims > 0 then call('DEL', unpack(claims)) end
if ARGV[4] == '1' then
  call('DEL', KEYS[4])
  if call('GET', KEYS[5]) == ARGV[3] then call('DEL', KEYS[5]) end
end
if next(pushed) then call('INCR', KEYS[2]) end
-- A list that is filled by a release may be one that nothing was put into before: its task was claimed as it became ready.
for list, count in pairs(pushed) do
  call('SADD', KEYS[6], names[list])
  wake(ctx, KEYS[6 + 2 * list], KEYS[1], count)
end
send(ctx)
return replies

-- settle: running → completed, delayed or failed, with all that follows. Items apply one after another, each whole.
-- KEYS     1 woken zset · 2 seq counter · 3 running zset · 4 delayed zset · 5 keeper string · 6 done:completed list
--          7 done:failed list · 8 lists set; then for each list: ready list, idle zset; then for each item: instance hash, claim
--          string, then the errors list (retry, failed) or the claim string of the follow-up to claim (completed)
-- DERIVED  {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix · 2 publish command · 3 worker · 4 TTL (ms) of follow-up claims · 5 lists · 6 items · names of lists
--          item: verdict, id, field `task:<t>`, run, record as claimed, ticket, number of arguments that follow
--          completed: follow-up to claim (0: none), nonce, if-empty | always, timeout (ms), deadline (ms), follow-ups,
--            for each: ready | after | arrive, list (from 1), entry, task, delay (ms) or need, total
--            then the snapshot's fields and values, records of ready and delayed follow-ups included
--          retry: record, list (from 1), entry, delay (ms), error · failed: record, error, message
-- RETURNS  {now, items}; an item: stored | lost | cancelled | gone | {claimed, list, entry, run, record, deadline}
-- COST     O(items): HMGET, HSET for each, one RPUSH or ZADD for each follow-up, two more for a claimed one
-- CALLED   RedisStore::settle
local function retry(key, errors, name, a)
  local list, wait = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 3])
  call('HSET', key, name, ARGV[a])
  if wait > 0 then
    delay(ctx, KEYS[4], ctx.now + wait, ARGV[6 + list] .. '\0' .. ARGV[a + 2])
  else
    queue(list, ARGV[a + 2])
  end
  keep(errors, ARGV[a + 4])
  return 'stored'
end

local function failed(key, errors, id, run, name, waiter, a)
  call('HSET', key, name, ARGV[a], 'status', 'failed', 'finished_at', ctx.at, 'error', ARGV[a + 1])
  close(ctx, key, id, sub(run, -12), name)
  keep(errors, ARGV[a + 1])
  ended(ctx, KEYS[7], id, run, 'failed', waiter, ARGV[a + 2])
  return 'stored'
end

-- The fence does not hold: a repeat of what is stored, or somebody else's task by now.
local function refused(r, verdict, key, claim, held, ticket, a)
  local state, attempt, nonce = fields(r[3])
  local _, mine, own = fields(held)
  if attempt == mine and nonce == own and state ~= 'running' and state ~= 'closed' then
    local wanted = verdict == 'completed' and tonumber(ARGV[a]) or 0
    if wanted == 0 then return 'stored' end
    local f = a + 6 * wanted
    local next = call('HMGET', key, 'task:' .. ARGV[f + 3], 'due:' .. ARGV[f + 3])
    local now, _, by, _, _, owner = fields(next[1])
    if now ~= 'running' or by ~= ARGV[a + 1] or owner ~= worker then return 'stored' end
    return { 'claimed', ARGV[6 + ARGV[f + 1]], ARGV[f + 2], r[1], next[1], next[2] or '' }
  end
  local value = call('GET', claim)
  local ours = worker .. ' ' .. r[1] .. ' ' .. mine .. ' ' .. own .. ' '
  if value and sub(value, 1, #ours) == ours then claims[#claims + 1] = claim end
  if r[2] == 'running' then return 'lost' end
  tickets[#tickets + 1] = ticket
  return 'cancelled'
end

local function settle(key, claim, third, a, last)
  local verdict, id, name, run, held = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local r = try('HMGET', key, 'run', 'status', name, 'open', 'waiter')
  if r.err then return foreign(r) and 'lost' end
  local open, from, reply = tonumber(r[4]), a + 7, nil
  if not r[1] then return 'gone' end
  if r[1] ~= run or not open then return 'lost' end
  if r[3] ~= held or r[2] ~= 'running' then return refused(r, verdict, key, claim, held, ARGV[a + 5], from) end
  if verdict == 'completed' then
    reply = completed(key, third, id, run, name, open, r[5], from, last)
  elseif verdict == 'retry' then
    reply = retry(key, third, name, from)
  else
    reply = failed(key, third, id, run, name, r[5], from)
  end
  if reply ~= 'lost' then claims[#claims + 1], tickets[#tickets + 1], changed = claim, ARGV[a + 5], true end
  return reply
end

call('ZREM', KEYS[1], worker)
local a, k = 7 + lists, 9 + 2 * lists
for i = 1, tonumber(ARGV[6]) do
  local last = a + 6 + tonumber(ARGV[a + 6])
  replies[i] = settle(KEYS[k], KEYS[k + 1], KEYS[k + 2], a, last)
  a, k = last + 1, k + 3
end
if #tickets > 0 then call('ZREM', KEYS[3], unpack(tickets)) end
if #claims > 0 then call('DEL', unpack(claims)) end
if changed then call('INCR', KEYS[2]) end
for list, count in pairs(pushed) do
  call('SADD', KEYS[8], ARGV[6 + list])
  wake(ctx, KEYS[8 + 2 * list], KEYS[1], count)
end
timer(ctx, KEYS[4], KEYS[5])
send(ctx)
return { ctx.at, replies }

-- settle: running → completed, delayed or failed, with all that follows. Items apply one after another, each whole.
-- KEYS     1 woken zset · 2 seq counter · 3 running zset · 4 delayed zset · 5 keeper string · 6 done:completed list
--          7 done:failed list · 8 lists set; then for each list: ready list, idle zset; then for each item: instance hash, claim
--          string, then the claim string of the follow-up to claim (handed, follow) or the errors list (retry, failed,
--          paused); last the waiting set and the paused set, if an item touches them
-- DERIVED  {p}waiting · {p}paused · {p}ready:<list> · {p}idle:<list> · {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix · 2 publish command · 3 worker · 4 TTL (ms) of follow-up claims · 5 lists · 6 items · names of lists
--          item: verdict, run, record as claimed, ticket, number of arguments that follow; by verdict:
--          ends: id, field of the result (or empty), fields · handed: ticket and value of the claim key of what follows, fields, its record the last
--          follow: id, follow-up to claim (0: none), nonce, if-empty | always, timeout (ms), deadline (ms), follow-ups, for
--            each: ready | after | arrive, list (from 1), entry, task, delay (ms) or need, total, or await, list, entry up
--            to its ref, task, timeout (ms or empty), signal; then fields
--          wait: field `task:<t>`, record, id, list (from 1), entry up to its ref, timeout (ms or empty), signal
--          retry: field `task:<t>`, record, list (from 1), entry, delay (ms), error
--          failed: field `task:<t>`, record, id, error, message
--          paused: field `task:<t>`, record, id, list (from 1), entry, error, control record, message
--          fields: names and values to store, `task:<t>` first, records of ready and delayed follow-ups included
-- RETURNS  {now, items}; an item: stored | lost | cancelled | gone | claimed | {claimed, list, entry, run, record, deadline}
-- COST     O(items): HMGET, HSET for each, SET for each follow-up that is claimed; one RPUSH for each list
-- CALLED   RedisStore::settle
local function retry(key, errors, a)
  local list, wait = ARGV[a + 2], tonumber(ARGV[a + 4])
  call('HSET', key, ARGV[a], ARGV[a + 1])
  if wait > 0 then
    delay(ctx, KEYS[4], ctx.now + wait, ARGV[6 + list] .. '\0' .. ARGV[a + 3])
  else
    queue(list, ARGV[a + 3])
  end
  keep(errors, ARGV[a + 5])
  return 'stored'
end

-- The task failed for good, its instance waits for a person: the ticket is parked when it is met.
local function pause(key, errors, run, status, a)
  local name, id, record = ARGV[a], ARGV[a + 2], ARGV[a + 5]
  call('HSET', key, name, ARGV[a + 1], 'error', record)
  call('HDEL', key, 'due:' .. sub(name, 6))
  if status == 'running' then
    call('HSET', key, 'status', 'paused', 'control', ARGV[a + 6])
    call('SADD', ctx.prefix .. 'paused', id)
    event(ctx, id, run, status, 'paused', ARGV[a + 7])
  end
  queue(ARGV[a + 3], ARGV[a + 4])
  keep(errors, record)
  return 'stored'
end

local function failed(key, errors, run, status, waiter, a)
  local name, id, record = ARGV[a], ARGV[a + 2], ARGV[a + 3]
  call('HSET', key, name, ARGV[a + 1], 'status', 'failed', 'finished_at', ctx.at, 'error', record)
  close(ctx, key, id, sub(run, -12), name)
  keep(errors, record)
  ended(ctx, KEYS[7], id, run, status, 'failed', waiter, ARGV[a + 4])
  return 'stored'
end

-- The fence does not hold: a repeat of what is stored, or somebody else's task by now.
local function refused(r, verdict, key, claim, held, ticket, a, last)
  local state, attempt, nonce = fields(r[3])
  local _, mine, own = fields(held)
  if attempt == mine and nonce == own and state ~= 'running' and state ~= 'closed' then
    return again(verdict, key, r[1], a, last)
  end
  local value = call('GET', claim)
  local ours = worker .. ' ' .. r[1] .. ' ' .. mine .. ' ' .. own .. ' '
  if value and sub(value, 1, #ours) == ours then claims[#claims + 1] = claim end
  if r[2] == 'running' or r[2] == 'paused' then return 'lost' end
  tickets[#tickets + 1] = ticket
  return 'cancelled'
end

-- Where the field `task:<t>` stands among the arguments of an item.
local function named(verdict, a)
  if verdict == 'ends' or verdict == 'handed' then return a + 2 end
  if verdict == 'follow' then return a + 7 + 6 * ARGV[a + 6] end
  return a
end

local function settle(verdict, k, a, last)
  local key, claim, run, held, ticket, from = KEYS[k], KEYS[k + 1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], a + 5
  local name = ARGV[named(verdict, from)]
  -- The end of a branch: what it arrives at is read along.
  local arrives = verdict == 'follow' and ARGV[from + 6] == '1' and ARGV[from + 7] == 'arrive'
  local join = arrives and 'join:' .. ARGV[from + 10]
  local r = verdict == 'handed' and try('HMGET', key, 'run', 'status', name, 'retries')
    or join and try('HMGET', key, 'run', 'status', name, 'open', 'waiter', 'times', 'retries', join)
    or try('HMGET', key, 'run', 'status', name, 'open', 'waiter', 'times', 'retries')
  if r.err then return foreign(r) and 'lost' end
  local open, reply = tonumber(verdict ~= 'handed' and r[4] or '1'), nil
  if not r[1] then return 'gone' end
  if r[1] ~= run or not open then return 'lost' end
  local status = r[2]
  if r[3] ~= held or status ~= 'running' and status ~= 'paused' then
    return refused(r, verdict, key, claim, held, ticket, from, last)
  end
  if verdict == 'ends' then
    reply = ends(key, r, open, from, last)
  elseif verdict == 'handed' then
    reply = hand_on(key, KEYS[k + 2], run, status, r[4], from, last)
  elseif verdict == 'follow' then
    reply = follow(key, KEYS[k + 2], name, open, r, { [join or ''] = r[8] }, from + 1, last)
  elseif verdict == 'wait' then
    reply = wait(ctx, key, from, queue)
  elseif verdict == 'retry' then
    reply = retry(key, KEYS[k + 2], from)
  elseif verdict == 'paused' then
    reply = pause(key, KEYS[k + 2], run, status, from)
  else
    reply = failed(key, KEYS[k + 2], run, status, r[5], from)
  end
  if reply ~= 'lost' then claims[#claims + 1], tickets[#tickets + 1], changed = claim, ticket, true end
  return reply
end

call('ZREM', KEYS[1], worker)
local a, k = 7 + lists, 9 + 2 * lists
for i = 1, tonumber(ARGV[6]) do
  local verdict, last = ARGV[a], a + 4 + ARGV[a + 4]
  replies[i] = settle(verdict, k, a, last)
  a, k = last + 1, k + ((verdict == 'ends' or verdict == 'wait') and 2 or 3)
end
if #tickets > 0 then call('ZREM', KEYS[3], unpack(tickets)) end
if #running > 0 then call('ZADD', KEYS[3], unpack(running)) end
if #claims > 0 then call('DEL', unpack(claims)) end
if changed then call('INCR', KEYS[2]) end
for list, entries in pairs(queued) do
  local known = tonumber(list)
  append(known and KEYS[7 + 2 * known] or ctx.prefix .. 'ready:' .. list, entries)
  call('SADD', KEYS[8], known and ARGV[6 + known] or list)
  wake(ctx, known and KEYS[8 + 2 * known] or ctx.prefix .. 'idle:' .. list, KEYS[1], #entries)
end
append(KEYS[6], finished)
timer(ctx, KEYS[4], KEYS[5])
send(ctx)
return { ctx.at, replies }

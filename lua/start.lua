-- start: absent → live, the first nodes ready or delayed. Items apply one after another, each whole.
-- KEYS     1 seq counter · 2 delayed zset · 3 keeper string · 4 woken zset · 5 lists set · 6 meta hash
--          then for each list: ready list, idle zset; then for each item: instance hash
-- DERIVED  {p}errors:<id> · {p}parked:<id> · {p}waiting · {p}paused · {p}mail:<mailbox> and {p}events (channels)
-- ARGV     1 prefix `{ns:p}:` · 2 publish command · 3 lists · 4 items · 5 guard: 1 on a cluster
--          6 1 if an id stands twice in the call · names of lists · number of kinds
--          what items have in common stands once, in a kind: policy, begin at (ms since 1970, or empty), begin after (ms),
--            first nodes, for each: task, list (from 1), delay (ms); how many names and values follow, and these: `about` first, to
--            which the time is added
--          item: kind (from 1), run, id, input, meta (or empty), then an entry for each first node of its kind
-- RETURNS  for each item started | superseded | unreadable | {exists, run, status} | {existing, run, status} |
--          {format, version}
-- COST     O(items): one HSET for each; one EXISTS for all, one RPUSH for each list, one ZADD for each timer
-- CALLED   RedisStore::start
-- Some items: all are looked at before any is stored, and entries come before snapshots.
local function apply(from, till, empty)
  local new, queued = {}, {}
  for i = from, till do
    local key, kind, a = KEYS[first + i], kinds[tonumber(ARGV[at])], at
    local old = empty and NOTHING or try('HMGET', key, 'run', 'status', 'replaced', 'v', 'waiter')
    local answer = known(old, kind.policy, ARGV[a + 1])
    replies[i] = answer or 'started'
    if not answer then
      new[#new + 1] = { kind = kind, key = key, old = old, a = a }
      for n, node in ipairs(kind.nodes) do
        if node[2] == 0 then
          local entries = queued[node[1]] or {}
          queued[node[1]], entries[#entries + 1] = entries, ARGV[a + 4 + n]
        end
      end
    end
    at = a + 5 + #kind.nodes
  end
  if #new > 0 and not touched then
    call('INCR', KEYS[1])
    touched = true
  end
  for list, entries in pairs(queued) do
    append(KEYS[5 + 2 * list], entries)
    pushed[list] = (pushed[list] or 0) + #entries
  end
  for i = 1, #new do store(new[i]) end
end

for i = 1, tonumber(ARGV[7 + lists]) do kinds[i] = kind() end
local empty = call('EXISTS', unpack(KEYS, first + 1, first + items)) == 0
if ARGV[5] == '1' and not empty then
  local keys, a = { KEYS[2], ctx.prefix .. 'waiting' }, at
  for _ = 1, items do
    keys[#keys + 1], keys[#keys + 2] = left_by(ARGV[a + 2])
    a = a + 5 + #kinds[tonumber(ARGV[a])].nodes
  end
  here(KEYS[6], keys)
end
if ARGV[6] == '1' then
  for i = 1, items do apply(i, i, false) end
else
  apply(1, items, empty)
end
for list, count in pairs(pushed) do
  call('SADD', KEYS[5], ARGV[6 + list])
  wake(ctx, KEYS[6 + 2 * list], KEYS[4], count)
end
timer(ctx, KEYS[2], KEYS[3])
send(ctx)
return replies

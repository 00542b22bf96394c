-- mend: puts right what no transition can have left so: an entry, a ticket, a member of an index, a field. What was seen
-- is compared first; what has changed since then, or is well by now, stays as it is.
-- KEYS     1 woken zset · 2 seq counter · 3 instance hash · 4 the key in question · 5 lists set · 6 idle zset · 7 ready list
--          8 claim string · 9 worker:<worker> string
-- DERIVED  {p}mail:<mailbox> (channel)
-- ARGV     1 prefix · 2 publish command · 3 look (change nothing) | mend · 4 action · 5 name of the list, or empty; by action:
--          entry, ticket: 6 run · 7 field `task:<t>` · 8 its record · 9 entry or ticket · 10 delay (ms)
--            11 start of the value of the claim key (empty: it has none)
--          member: 6 which set: waiting | paused; 7 instance id
--          done: 6 run · 7 status · 8 when it ended (ms since 1970) · 9 entry of the index
--          undone: 6 entry of the index
--          hold: 6 value of the claim key · 7 field `task:<t>`
--          orphan, listed, count: nothing
--          field: 6 field · 7 value that was seen (empty: none) · 8 value to store (empty: none)
--          aside: 6 ticket · 7 entry · 8 field `task:<t>` · 9 tail of the run
-- RETURNS  well | ill | mended | changed | left: it cannot be put right here
-- COST     O(1); entry, done: O(length of the list); count: O(tasks)
-- CALLED   Doctor::examine, Doctor::mend
local function live(status) return status == 'running' or status == 'paused' end

local function same(field)
  local r = try('HMGET', key, 'run', 'status', field)
  if r.err then return foreign(r) and false end
  return r[1] == ARGV[6] and live(r[2]) and r[3] == ARGV[8]
end

-- A ready task stands in its list.
function actions.entry()
  if not same(ARGV[7]) then return 'changed' end
  if call('LPOS', KEYS[4], ARGV[9]) then return 'well' end
  return ill(function() push(KEYS[4], ARGV[9]) end)
end

-- A claim key that is gone is set again if its owner is there, for as long as that is known to be; else it is left to the
-- reaper. What is past its deadline is too.
local function hold()
  local ttl, deadline = call('GET', KEYS[9]), tonumber((select(7, fields(ARGV[8]))))
  if not ttl or ARGV[11] == '' or call('EXISTS', KEYS[8]) == 1 then return end
  local left = math.min(call('PTTL', KEYS[9]), deadline and deadline - ctx.now or math.huge)
  if left > 0 then call('SET', KEYS[8], ARGV[11] .. ttl, 'PX', text(left)) end
end

-- A delayed or running task has its ticket; one that is there is looked at when it is due anew.
function actions.ticket()
  if not same(ARGV[7]) then return 'changed' end
  return ill(function()
    call('ZADD', KEYS[4], text(ctx.now + ARGV[10]), ARGV[9])
    hold()
  end)
end

-- The fields of a snapshot that say how many tokens live.
function actions.count()
  local status, stored = unpack(call('HMGET', key, 'status', 'open'))
  local open, names = 0, {}
  for _, name in ipairs(call('HKEYS', key)) do
    if sub(name, 1, 5) == 'task:' then names[#names + 1] = name end
  end
  for from = 1, #names, 1000 do
    for _, record in ipairs(call('HMGET', key, unpack(names, from, math.min(from + 999, #names)))) do
      local state = fields(record)
      if not state then return 'left' end
      if state == 'ready' or state == 'delayed' or state == 'running' or state == 'waiting' then open = open + 1 end
    end
  end
  if not live(status) and status ~= 'completed' or live(status) == (open == 0) then return 'left' end
  if (stored or (live(status) and '1' or '0')) == tostring(open) then return 'well' end
  return ill(function() call('HSET', key, 'open', open) end)
end

function actions.field()
  local value = call('HGET', key, ARGV[6]) or ''
  if value ~= ARGV[7] then return 'changed' end
  if call('EXISTS', key) == 0 then return 'changed' end
  return ill(function()
    if ARGV[8] == '' then call('HDEL', key, ARGV[6]) else call('HSET', key, ARGV[6], ARGV[8]) end
  end)
end

-- What was set aside goes back to its list when it can be read now, or falls if its time is over.
function actions.aside()
  if call('HEXISTS', KEYS[4], ARGV[6]) == 0 then return 'well' end
  local r = try('HMGET', key, 'v', 'run', 'status', ARGV[8])
  if r.err then return foreign(r) and 'left' end
  if (r[1] or r[2]) and (r[1] ~= '1' or not r[2] or r[4] and not fields(r[4])) then return 'left' end
  return ill(function()
    if r[2] and sub(r[2], -12) == ARGV[9] and live(r[3]) and fields(r[4]) == 'ready' then push(KEYS[7], ARGV[7]) end
    call('HDEL', KEYS[4], ARGV[6])
  end)
end

local reply = actions[ARGV[4]]()
if reply == 'mended' then call('INCR', KEYS[2]) end
send(ctx)
return reply

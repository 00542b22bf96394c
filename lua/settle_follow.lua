-- Part of settle: what follows a completed task. Shares the state of the call with the parts behind it; the keys and
-- arguments are those in the header of settle.lua.
local LOOK = 5000
local ctx, worker, ttl = begin(ARGV[1], ARGV[2]), ARGV[3], ARGV[4]
local lists, replies, pushed, tickets, claims, changed = tonumber(ARGV[5]), {}, {}, {}, {}, false

local function queue(list, entry)
  call('RPUSH', KEYS[7 + 2 * list], entry)
  pushed[list] = (pushed[list] or 0) + 1
end

-- The join record with one more arrival, and whether it fires now; nothing if it cannot be read.
local function arrive(record, who, need, total)
  local arrived, failed, fired, names = 0, 0, '0', ''
  if record then
    arrived, failed, need, total, fired, names = string.match(record, '^(%d+) (%d+) (%d+) (%d+) ([01]) (.*)$')
    if not arrived then return end
  end
  arrived = arrived + 1
  local fires = fired == '0' and arrived >= tonumber(need)
  names = names == '' and who or names .. ',' .. who
  return table.concat({ arrived, failed, need, total, fires and '1' or fired, names }, ' '), fires
end

-- Claims a follow-up for the caller: the fields to store, and the answer.
local function claim_next(claim, run, set, a, f)
  local list, entry, task, nonce = ARGV[6 + ARGV[f + 1]], ARGV[f + 2], ARGV[f + 3], ARGV[a + 1]
  local ends, due = tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  ends, due = ends and ctx.now + ends, due and ctx.now + due
  if due and (not ends or due < ends) then ends = due end
  local record = 'running 1 ' .. nonce .. ' 0 0 ' .. worker .. ' ' .. (ends and text(ends) or '-')
  call('SET', claim, worker .. ' ' .. run .. ' 1 ' .. nonce .. ' ' .. ttl, 'PX', ttl)
  call('ZADD', KEYS[3], text(ctx.now + math.min(tonumber(ttl), LOOK)), list .. '\0' .. entry)
  set[#set + 1], set[#set + 2] = 'task:' .. task, record
  due = due and text(due)
  if due then set[#set + 1], set[#set + 2] = 'due:' .. task, due end
  return { 'claimed', list, entry, run, record, due or '' }
end

local function completed(key, claim, id, run, name, open, waiter, a, last)
  local wanted, follows, delta = tonumber(ARGV[a]), tonumber(ARGV[a + 5]), -1
  local set, joins, full, ready, after, taken = { unpack(ARGV, a + 6 + 6 * follows, last) }, {}, {}, nil, nil, nil
  for i = 1, follows do
    local f = a + 6 * i
    local kind, list, runs = ARGV[f], ARGV[f + 1], ARGV[f] == 'ready'
    if kind == 'arrive' then
      local join = 'join:' .. ARGV[f + 3]
      joins[join], runs = arrive(joins[join] or call('HGET', key, join), sub(name, 6), ARGV[f + 4], ARGV[f + 5])
      if not joins[join] then return 'lost' end
      set[#set + 1], set[#set + 2] = join, joins[join]
      if runs then set[#set + 1], set[#set + 2] = 'task:' .. ARGV[f + 3], 'ready 0 - 0 0 - -' end
    end
    if runs or kind == 'after' then delta = delta + 1 end
    if runs and i == wanted and (ARGV[a + 2] == 'always'
        or not full[list] and call('LLEN', KEYS[7 + 2 * list]) == 0) then
      taken = f
    elseif runs then
      ready = ready or {}
      full[list], ready[#ready + 1] = true, f
    elseif kind == 'after' then
      after = after or {}
      after[#after + 1] = f
    end
  end
  local reply = taken and claim_next(claim, run, set, a, taken) or 'stored'
  open = open + delta
  if delta ~= 0 then set[#set + 1], set[#set + 2] = 'open', open end
  if open == 0 then
    set[#set + 1], set[#set + 2], set[#set + 3], set[#set + 4] = 'status', 'completed', 'finished_at', ctx.at
  end
  call('HSET', key, unpack(set))
  for i = 1, ready and #ready or 0 do queue(tonumber(ARGV[ready[i] + 1]), ARGV[ready[i] + 2]) end
  for i = 1, after and #after or 0 do
    local f = after[i]
    delay(ctx, KEYS[4], ctx.now + tonumber(ARGV[f + 4]), ARGV[6 + ARGV[f + 1]] .. '\0' .. ARGV[f + 2])
  end
  if open == 0 then ended(ctx, KEYS[6], id, run, 'completed', waiter) end
  return reply
end


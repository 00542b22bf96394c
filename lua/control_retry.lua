-- Part of control: failed → running. Shares the state of the call with the part behind it; the keys and arguments are
-- those in the header of control.lua.
local NEAR = 1000
local prefix, action, id, key, ctx = ARGV[1], ARGV[4], ARGV[5], KEYS[4], begin(ARGV[1], ARGV[2])
local run, status, waiter, finished, retries
local lists = {}

local function push(list, entry)
  local entries = lists[list] or {}
  lists[list], entries[#entries + 1] = entries, entry
end

-- On a cluster the keys that are computed are looked at before anything is written.
local function check(filled, done)
  if ARGV[3] ~= '1' then return end
  local keys = { done }
  for list in pairs(filled) do
    keys[#keys + 1] = prefix .. 'ready:' .. list
    keys[#keys + 1] = prefix .. 'idle:' .. list
  end
  here(KEYS[1], keys)
end

local function fill()
  for list, entries in pairs(lists) do
    call('SADD', KEYS[8], list)
    for i = 1, #entries, 4000 do
      call('RPUSH', prefix .. 'ready:' .. list, unpack(entries, i, math.min(i + 3999, #entries)))
    end
  end
end

-- Takes an instance out of an index of finished ones, if it is near one of the ends; else its entry stays, and is void.
local function unlist(done, at)
  local entry = at .. '\0' .. id .. '\0' .. sub(run, -12)
  for _, from in ipairs({ 1, -1 }) do
    if call('LPOS', done, entry, 'RANK', from, 'MAXLEN', NEAR) then return call('LREM', done, from, entry) end
  end
end

-- The attempts of a task, and its failures and crashes.
local function counts(task)
  local _, attempt, _, failures, crashes = fields(call('HGET', key, 'task:' .. task))
  return attempt or '0', failures or '0', crashes or '0'
end

-- Who begins again or goes on, from an argument on; what is ready now is pushed later.
local function revive(a, count, width, set, gone)
  for i = a, a + width * (count - 1), width do
    local task, list, entry, wait = ARGV[i], ARGV[i + 1], ARGV[i + 2], width == 4 and tonumber(ARGV[i + 3])
    local attempt, failures, crashes = counts(task)
    local ticket, state = list .. '\0' .. entry, 'ready'
    if wait then
      failures, crashes = '0', '0'
      -- The signal that a node waited for is its input when it is there, and stays.
      local ref, own = select(4, parse(entry, 1)), 'out:' .. task .. ' '
      if sub(ref, 1, #own) ~= own then gone[#gone + 1] = 'out:' .. task end
      if wait > 0 then
        state = 'delayed'
        delay(ctx, KEYS[9], ctx.now + wait, ticket)
      end
    elseif call('ZSCORE', KEYS[9], ticket) then
      state = 'delayed'
    end
    if state == 'ready' then push(list, entry) end
    gone[#gone + 1] = 'due:' .. task
    set[#set + 1] = 'task:' .. task
    set[#set + 1] = table.concat({ state, attempt, '-', failures, crashes, '-', '-' }, ' ')
  end
  return a + width * count
end

local function joined(task, arrived, names)
  local _, failed, need, total = string.match(call('HGET', key, 'join:' .. task) or '', '^(%d+) (%d+) (%d+) (%d+) ')
  if need and tonumber(arrived) > 0 then
    return table.concat({ arrived, failed, need, total, '0', names }, ' ')
  end
end

local function retry()
  local again, on, clear, joins = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
  local targets = {}
  for i = 16, 15 + 4 * again, 4 do targets[ARGV[i + 1]] = true end
  for i = 16 + 4 * again, 15 + 4 * again + 3 * on, 3 do targets[ARGV[i + 1]] = true end
  check(targets, prefix .. 'done:failed')
  unlist(prefix .. 'done:failed', finished)
  call('UNLINK', KEYS[6])
  local set, gone = {}, { 'finished_at', 'error' }
  local a = revive(revive(16, again, 4, set, gone), on, 3, set, gone)
  for i = a, a + clear - 1 do
    local task, attempt = ARGV[i], counts(ARGV[i])
    if attempt == '0' then
      gone[#gone + 1] = 'task:' .. task
    else
      set[#set + 1], set[#set + 2] = 'task:' .. task, 'cleared ' .. attempt .. ' - 0 0 - -'
    end
    gone[#gone + 1], gone[#gone + 2], gone[#gone + 3] = 'out:' .. task, 'due:' .. task, 'progress:' .. task
  end
  for i = a + clear, a + clear + 3 * (joins - 1), 3 do
    local record = joined(ARGV[i], ARGV[i + 1], ARGV[i + 2])
    if record then
      set[#set + 1], set[#set + 2] = 'join:' .. ARGV[i], record
    else
      gone[#gone + 1] = 'join:' .. ARGV[i]
    end
  end
  for i = 1, #gone, 4000 do call('HDEL', key, unpack(gone, i, math.min(i + 3999, #gone))) end
  for i = 1, #set, 4000 do call('HSET', key, unpack(set, i, math.min(i + 3999, #set))) end
  call('HSET', key, 'status', 'running', 'open', again + on, 'retries', retries + 1, 'control', ARGV[8], 'controlled', ARGV[7])
  fill()
  event(ctx, id, run, 'failed', 'running')
end

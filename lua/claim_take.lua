-- Part of claim: one entry. Shares the state of the call with the part behind it; the keys and arguments are those in
-- the header of claim.lua.
local DROPS, INPUT, LOOK, AGAIN = 64, 262144, 5000, 60000
local prefix, worker, nonce, want, ttl = ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local lists, ctx = tonumber(ARGV[9]), begin(ARGV[1], ARGV[2])
local claims, aside, last, limits, taken, tickets = {}, {}, { nonce }, {}, {}, {}
local budget, left, got, met, again, parked, group, of = INPUT, want + DROPS, 0, 0, 'done', 'free', nil, nil
local instances, holds, look = prefix .. 'instance:', prefix .. 'claim:', text(ctx.now + math.min(tonumber(ttl), LOOK))
local fresh, first = 'running 1 ' .. nonce .. ' 0 0 ' .. worker .. ' -', ' 1 ' .. nonce .. ' ' .. ttl

local function answer(list, entry, ticket, run, record, input, overall)
  if list ~= of then
    of, group = list, {}
    claims[#claims + 1], claims[#claims + 2] = list, group
  end
  local n = #group
  group[n + 1], group[n + 2], group[n + 3] = entry, run, record == fresh and '' or record
  group[n + 4], group[n + 5] = input or '', overall or ''
  got = got + 1
  last[#last + 1] = ticket
  if input then budget = math.max(0, budget - #input) end
end

local function unreadable(ticket, reason)
  call('HSET', KEYS[6], ticket, reason)
  aside[#aside + 1] = ticket
  aside[#aside + 1] = reason
end

-- Keeps the ticket of a paused instance until it is resumed.
local function park(ticket, id)
  call('RPUSH', prefix .. 'parked:' .. id, ticket)
  met = met + 1
end

-- Takes one entry, or drops it: it is only a hint, the snapshot decides. What is taken is stored by `store`.
local function take(list, entry, again_only)
  local id, task, tail, ref = parse(entry, 1)
  local ticket = list .. '\0' .. entry
  if not id then return unreadable(ticket, 'the entry cannot be read') end
  local key, name, limit = instances .. id, 'task:' .. task, limits[list] and limits[list][task]
  local space = find(ref, ' ', 1, true)
  local size = space and tonumber(sub(ref, space + 1))
  local input, r = size and size <= budget and sub(ref, sub(ref, 1, 1) == '!' and 2 or 1, space - 1) or 'v', nil
  if limit then
    r = try('HMGET', key, 'v', 'run', 'status', name, 'times', input, 'due:' .. task)
  else
    r = try('HMGET', key, 'v', 'run', 'status', name, 'times', input)
  end
  if r.err then return foreign(r) and unreadable(ticket, 'the key does not hold a snapshot') end
  local version, run, record = r[1], r[2], r[4]
  if not version and not run then return end
  if version ~= '1' then return unreadable(ticket, 'unknown format ' .. (version or '')) end
  if not run then return unreadable(ticket, 'the snapshot has no run') end
  if sub(run, -12) ~= tail or not record then return end
  if r[3] ~= 'running' then
    if r[3] ~= 'paused' then return end
    if fields(record) == 'ready' then return again_only or park(ticket, id) end
  end
  local payload, due, hold = input ~= 'v' and r[6], limit and r[7], holds .. id .. ':' .. task
  local running, value = fresh, nil
  if record ~= 'ready 0 - 0 0 - -' or limit then
    local state, number, held, failures, crashes, owner = fields(record)
    if not state then return unreadable(ticket, 'the task record cannot be read') end
    if state == 'running' and held == nonce and owner == worker then
      -- Its entry may stand twice.
      if taken[hold] then return end
      taken[hold] = true
      return answer(list, entry, ticket, run, record, payload, due)
    end
    if state ~= 'ready' or again_only or taken[hold] then return end
    local attempt, deadline = number + 1, '-'
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
    value = worker .. ' ' .. run .. ' ' .. attempt .. ' ' .. nonce .. ' ' .. ttl
  elseif again_only or taken[hold] then
    return
  end
  local n, t = #taken, #tickets
  taken[hold], tickets[t + 1], tickets[t + 2] = true, look, ticket
  taken[n + 1], taken[n + 2], taken[n + 3] = key, name, running
  taken[n + 4], taken[n + 5], taken[n + 6] = hold, value or worker .. ' ' .. run .. first, r[5]
  answer(list, entry, ticket, run, running, payload, due)
end

-- The tickets first: one whose task is not running is dropped when it is looked at.
local function store()
  if got == 0 then return end
  if #tickets > 0 then call('ZADD', KEYS[4], unpack(tickets)) end
  for i = 1, #taken, 6 do
    call('SET', taken[i + 3], taken[i + 4], 'PX', ttl)
    if taken[i + 5] then
      call('HSET', taken[i], taken[i + 1], taken[i + 2])
    else
      call('HSET', taken[i], taken[i + 1], taken[i + 2], 'times', ctx.at)
    end
  end
  call('SET', KEYS[5], cmsgpack.pack(last), 'PX', AGAIN)
end


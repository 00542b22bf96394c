-- Part of claim: one entry. Shares the state of the call with the part behind it; the keys and arguments are those in
-- the header of claim.lua.
local DROPS, INPUT, LOOK, AGAIN = 64, 262144, 5000, 60000
local prefix, worker, nonce, want, ttl = ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local lists, ctx = tonumber(ARGV[9]), begin(ARGV[1], ARGV[2])
local claims, aside, last, limits = {}, {}, { nonce }, {}
local budget, left, got, again, parked = INPUT, want + DROPS, 0, 'done', 'free'
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


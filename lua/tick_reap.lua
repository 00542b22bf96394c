-- Part of tick: claims that expired are recovered. Shares the state of the call with the parts behind it; the keys and
-- arguments are those in the header of tick.lua.
-- A running task whose claim key is gone, from what its ticket and its snapshot say; or why it is left alone.
local function look(ticket, list, entry, id, task, tail)
  local key, name = prefix .. 'instance:' .. id, 'task:' .. task
  local r = try('HMGET', key, 'v', 'run', 'status', name, 'about', 'waiter', 'on_exhausted')
  if not r.err and not r[1] and not r[2] then return nil, 'gone' end
  if unreadable(r) then return nil, 'unreadable' end
  if not is_live(r, tail) then return nil, 'gone' end
  local state, attempt, _, failures, crashes, owner, deadline = fields(r[4])
  if not state then return nil, 'unreadable' end
  if state ~= 'running' then return nil, 'gone' end
  return { ticket = ticket, list = list, entry = entry, id = id, task = task, tail = tail, key = key, name = name,
    run = r[2], most = tonumber(string.match(r[5] or '', ' (%d+) %d+$')) or 0, waiter = r[6], status = r[3], pauses = r[7] == 'pause', attempt = attempt, failures = failures, crashes = crashes,
    worker = owner, deadline = deadline }
end

-- The tickets to look at now: those that stay get a new score, the others are answered, with what is gone for good.
local function examine(due, keys)
  local gone, taken = {}, {}
  for i = 1, #due, 2 do
    local ticket = due[i]
    local list, entry, id, task, tail = unticket(ticket)
    local claim = id and prefix .. 'claim:' .. id .. ':' .. task
    local left = id and call('PTTL', claim) or -2
    if left >= 0 then
      alive(claim, left, ticket)
    else
      local t, why = nil, 'gone'
      if id then t, why = look(ticket, list, entry, id, task, tail) else set_aside(ticket) end
      if t and keys then
        local n = #keys
        keys[n + 1], keys[n + 2], keys[n + 3], keys[n + 4] = claim, t.key, prefix .. 'ready:' .. list, prefix .. 'idle:' .. list
        keys[n + 5], keys[n + 6] = prefix .. 'errors:' .. id, prefix .. 'worker:' .. t.worker
      end
      if why == 'unreadable' then
        score(text(ctx.now + LOOK), ticket)
      elseif not t or doomed[t.key] then
        gone[#gone + 1] = ticket
      elseif expired(t, tonumber(due[i + 1]) % 1 ~= 0) then
        gone[#gone + 1], taken[#taken + 1] = ticket, t
      end
    end
  end
  return gone, taken
end

local function reap_expired()
  local due = call('ZRANGEBYSCORE', KEYS[4], '-inf', ctx.at, 'LIMIT', 0, reap, 'WITHSCORES')
  if #due == 2 * reap then again = 'again' end
  local keys = guard and { KEYS[4], KEYS[5], KEYS[13] }
  local gone, taken = examine(due, keys)
  if keys then here(KEYS[1], keys) end
  flush('LPUSH', heads)
  for _, t in ipairs(taken) do
    if t.dead and t.pauses then
      -- Of two in one call the second finds it paused.
      t.status = paused[t.key] or t.status
      paused[t.key] = 'paused'
      pause(t, t.dead)
    elseif t.dead then
      dead(t, t.dead)
    else
      if t.wait > 0 then delay(ctx, KEYS[5], ctx.now + t.wait, t.ticket) end
      call('HSET', t.key, t.name, (t.wait > 0 and 'delayed' or 'ready') .. t.next)
      if t.what == 'requeued' then keep(prefix .. 'errors:' .. t.id, error_of(t)) end
      recover(t, t.what, t.total)
    end
  end
  for _, ticket in ipairs(call('ZRANGEBYSCORE', KEYS[4], text(ctx.now + LOOK + SLACK + 1), '+inf', 'LIMIT', 0, reap)) do
    score(ctx.at, ticket)
  end
  if #scores > 0 then call('ZADD', KEYS[4], unpack(scores)) end
  done_with(KEYS[4], gone)
end


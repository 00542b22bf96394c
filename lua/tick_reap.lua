-- Part of tick: claims that expired are recovered. Shares the state of the call with the parts behind it; the keys and arguments are those in the
-- header of tick.lua.
local function score(at, ticket)
  scores[#scores + 1], scores[#scores + 2] = at, ticket
end

-- A claim key that is there: when to look again. One that outlives what its owner asked for (the clock was set back)
-- is cut.
local function alive(claim, left, ticket)
  if left > tonumber(ARGV[11]) then
    local asked = tonumber(string.match(call('GET', claim) or '', ' (%d+)$'))
    if asked and left > asked then
      call('PEXPIRE', claim, asked)
      left = asked
    end
  end
  score(text(ctx.now + math.min(LOOK, left + 1)), ticket)
end

local function recover(t, what, crashes)
  for _, value in ipairs({ what, t.id, t.task, t.worker, crashes or 0 }) do recovered[#recovered + 1] = value end
end

local function error_of(t)
  return cmsgpack.pack({ kind = 'crash', task = t.task, attempt = tonumber(t.attempt), message = 'worker lease expired',
    worker = t.worker, at = ctx.now })
end

local function dead(t, crashes)
  local record = error_of(t)
  call('HSET', t.key, t.name, 'failed ' .. t.attempt .. ' - ' .. t.failures .. ' ' .. crashes .. ' - -',
    'status', 'failed', 'finished_at', ctx.at, 'error', record)
  close(ctx, t.key, t.id, t.tail, t.name)
  keep(prefix .. 'errors:' .. t.id, record)
  ended(ctx, KEYS[9], t.id, t.run, 'failed', t.waiter, 'worker lease expired')
  recover(t, 'failed', crashes)
end

-- Instances that end in this call: what else of theirs has expired falls.
local doomed = {}

-- The claim key is gone. Decides what becomes of the task: its next record, and whether it waits.
local function expired(t, doubt)
  local crashes, wait, what, entry = tonumber(t.crashes), 0, 'lost', t.entry
  if t.deadline ~= '-' and tonumber(t.deadline) <= ctx.now then
    local at = #entry - #select(4, parse(entry, 1)) + 1
    what = 'timed-out'
    if sub(entry, at, at) ~= '!' then entry = sub(entry, 1, at - 1) .. '!' .. sub(entry, at) end
  else
    local presence = call('GET', prefix .. 'worker:' .. t.worker)
    if presence and not doubt then
      return score(string.format('%.1f', ctx.now + math.min(LOOK, math.floor(presence / 2)) + 0.5), t.ticket)
    end
    if not presence then
      what, crashes = 'requeued', crashes + 1
      if crashes > t.most then
        t.dead, doomed[t.key] = crashes, true
        return t
      end
      if crashes > 1 then wait = math.min(ARGV[10] * 2 ^ (crashes - 2), SLOWEST) end
    end
  end
  t.what, t.total, t.wait = what, crashes, wait
  t.next = ' ' .. t.attempt .. ' - ' .. t.failures .. ' ' .. crashes .. ' - -'
  if wait == 0 then push(heads, t, entry) end
  return t
end

local function reap_expired()
  local due, tickets, gone, taken = call('ZRANGEBYSCORE', KEYS[4], '-inf', ctx.at, 'LIMIT', 0, reap, 'WITHSCORES'), {}, {}, {}
  if #due == 2 * reap then again = 'again' end
  for i = 1, #due, 2 do
    local _, _, id, task = unticket(due[i])
    local claim = id and prefix .. 'claim:' .. id .. ':' .. task
    local left = id and call('PTTL', claim) or -2
    if left >= 0 then
      alive(claim, left, due[i])
    else
      tickets[#tickets + 1], tickets[#tickets + 2] = due[i], tonumber(due[i + 1]) % 1 ~= 0
    end
  end
  for i, t in ipairs(look_all(tickets, 2)) do
    if t.unreadable and t.list then
      score(text(ctx.now + LOOK), t.ticket)
    elseif t.state ~= 'running' then
      if t.unreadable then set_aside(t) end
      gone[#gone + 1] = t.ticket
    elseif doomed[t.key] then
      gone[#gone + 1] = t.ticket
    elseif expired(t, tickets[2 * i]) then
      gone[#gone + 1], taken[#taken + 1] = t.ticket, t
    end
  end
  flush('LPUSH', heads)
  for _, t in ipairs(taken) do
    if t.dead then
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


-- Part of tick: one claim that is looked at, what it means and what becomes of it. Shares the state of the call with
-- the parts behind it; the keys and arguments are those in the header of tick.lua.
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
  local n = #recovered
  recovered[n + 1], recovered[n + 2], recovered[n + 3], recovered[n + 4] = what, t.id, t.task, t.worker
  recovered[n + 5] = crashes
end

local function error_of(t)
  return cmsgpack.pack({ kind = 'crash', task = t.task, attempt = tonumber(t.attempt), message = 'worker lease expired',
    worker = t.worker, at = ctx.now })
end

-- Its instance waits for a person: the ticket is parked when it is met.
local function pause(t, crashes)
  local record, message = error_of(t), 'worker lease expired'
  call('HSET', t.key, t.name, 'ready ' .. t.attempt .. ' - 0 0 - -', 'error', record)
  call('HDEL', t.key, 'due:' .. t.task)
  if t.status == 'running' then
    local why = { control = 'pause', reason = '`' .. t.task .. '` failed: ' .. message }
    call('HSET', t.key, 'status', 'paused', 'control', cmsgpack.pack(why))
    call('SADD', KEYS[14], t.id)
    event(ctx, t.id, t.run, t.status, 'paused', message)
  end
  keep(prefix .. 'errors:' .. t.id, record)
  recover(t, 'paused', crashes)
end

local function dead(t, crashes)
  local record = error_of(t)
  call('HSET', t.key, t.name, 'failed ' .. t.attempt .. ' - ' .. t.failures .. ' ' .. crashes .. ' - -',
    'status', 'failed', 'finished_at', ctx.at, 'error', record)
  close(ctx, t.key, t.id, t.tail, t.name)
  keep(prefix .. 'errors:' .. t.id, record)
  ended(ctx, KEYS[9], t.id, t.run, t.status, 'failed', t.waiter, 'worker lease expired')
  recover(t, 'failed', crashes)
end

-- The presence of a worker, read once for each call.
local function present(owner)
  if presences[owner] == nil then presences[owner] = call('GET', prefix .. 'worker:' .. owner) end
  return presences[owner]
end

-- Instances that end in this call: what else of theirs has expired falls.
local doomed, paused = {}, {}

-- The claim key is gone. Decides what becomes of the task: its next record, and whether it waits.
local function expired(t, doubt)
  local crashes, wait, what, entry = tonumber(t.crashes), 0, 'lost', t.entry
  if t.deadline ~= '-' and tonumber(t.deadline) <= ctx.now then
    local at = #entry - #select(4, parse(entry, 1)) + 1
    what = 'timed-out'
    if sub(entry, at, at) ~= '!' then entry = sub(entry, 1, at - 1) .. '!' .. sub(entry, at) end
  else
    local presence = present(t.worker)
    if presence and not doubt then
      return score(string.format('%.1f', ctx.now + math.min(LOOK, math.floor(presence / 2)) + 0.5), t.ticket)
    end
    if not presence then
      what, crashes = 'requeued', crashes + 1
      if crashes > t.most then
        t.dead, doomed[t.key] = crashes, not t.pauses or nil
        if t.pauses then push(heads, t.list, entry) end
        return t
      end
      if crashes > 1 then wait = math.min(ARGV[10] * 2 ^ (crashes - 2), SLOWEST) end
    end
  end
  t.what, t.total, t.wait = what, crashes, wait
  t.next = ' ' .. t.attempt .. ' - ' .. t.failures .. ' ' .. crashes .. ' - -'
  if wait == 0 then push(heads, t.list, entry) end
  return t
end


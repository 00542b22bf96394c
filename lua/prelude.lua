-- Put in front of every script. Functions of their arguments; `ctx`, made by `begin`, carries what one call shares:
-- prefix, publish command, the time as number (`now`) and text (`at`), and what to publish last.
local KEYS, ARGV, call, try, find, sub = KEYS, ARGV, redis.call, redis.pcall, string.find, string.sub
local SHOWN_BY, WAKES, REPLACED, KEPT, TOLD = 15000, 8, 295, 20, 1024

local function text(number) return string.format('%.0f', number) end

local function begin(prefix, publish)
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return { prefix = prefix, publish = publish, now = now, at = text(now), events = {}, hints = {} }
end

-- `<id>\0<task>\0<run tail><ref>`, from a position on; nothing if it is not an entry.
local function parse(entry, from)
  local a = find(entry, '\0', from, true)
  local b = a and find(entry, '\0', a + 1, true)
  if b and #entry >= b + 12 then
    return sub(entry, from, a - 1), sub(entry, a + 1, b - 1), sub(entry, b + 1, b + 12), sub(entry, b + 13)
  end
end

-- `<list>\0<entry>` → list, entry, id, task, tail, ref.
local function unticket(ticket)
  local a = find(ticket, '\0', 1, true)
  if a then return sub(ticket, 1, a - 1), sub(ticket, a + 1), parse(ticket, a + 1) end
end

-- The error of a read: a key of a foreign type is an unreadable record, everything else is raised again.
local function foreign(reply) return find(reply.err, 'WRONGTYPE', 1, true) or error(reply.err, 0) end

-- On a cluster: raises while the slot moves, before anything was written, if one of the keys is not here.
local function here(meta, keys)
  for i = 1, #keys, 4000 do call('EXISTS', meta, unpack(keys, i, math.min(i + 3999, #keys))) end
end

local function hint(ctx, mailbox, message)
  local hints = ctx.hints
  hints[#hints + 1] = mailbox
  hints[#hints + 1] = message
end

-- Up to `count` workers parked at a list, the newest first; not seen for three polls is void.
local function wake(ctx, idle, woken, count)
  local parked = call('ZPOPMAX', idle, math.min(count, WAKES))
  for i = 1, #parked, 2 do
    if tonumber(parked[i + 1]) >= ctx.now - SHOWN_BY then
      call('ZADD', woken, ctx.at, parked[i])
      hint(ctx, parked[i], 'ready')
    end
  end
end

local function delay(ctx, delayed, due, ticket)
  call('ZADD', delayed, text(due), ticket)
  ctx.due = math.min(due, ctx.due or due)
end

-- In chunks that `unpack` can take.
local function append(key, values)
  for i = 1, #values, 4000 do call('RPUSH', key, unpack(values, i, math.min(i + 3999, #values))) end
end

-- The keeper hears of a timer that is due before all others.
local function timer(ctx, delayed, keeper)
  if ctx.due and tonumber(call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]) == ctx.due then
    local owner = call('GET', keeper)
    if owner then hint(ctx, owner, 'timer') end
  end
end

-- Closes the open tasks of an instance but one, and tells the owners of those that run.
local function close(ctx, key, id, tail, except)
  local names = {}
  for _, name in ipairs(call('HKEYS', key)) do
    if sub(name, 1, 5) == 'task:' and name ~= except then names[#names + 1] = name end
    if name == 'waits' then unwait(ctx, key, id, tail) end
  end
  for from = 1, #names, 1000 do
    local till, set = math.min(from + 999, #names), {}
    for i, record in ipairs(call('HMGET', key, unpack(names, from, till))) do
      local state, _, _, _, _, worker = fields(record)
      if state == 'ready' or state == 'delayed' or state == 'running' or state == 'waiting' then
        set[#set + 1] = names[from + i - 1]
        set[#set + 1] = 'closed' .. sub(record, #state + 1)
        if state == 'running' then hint(ctx, worker, 'cancel ' .. tail .. ' ' .. id) end
      end
    end
    if #set > 0 then call('HSET', key, unpack(set)) end
  end
end

-- Who waits for this run hears that it is over, and with which result, if that is small.
local function tell(ctx, waiter, id, tail, result)
  local message = 'done ' .. tail .. ' ' .. id
  if result and #result <= TOLD then message = message .. '\n' .. result end
  for mailbox in string.gmatch(waiter or '', '%S+') do hint(ctx, mailbox, message) end
end

local function event(ctx, id, run, from, to, message)
  message = message and '\t' .. string.gsub(message, '%c', ' ') or ''
  ctx.events[#ctx.events + 1] = ctx.at .. '\t' .. id .. '\t' .. run .. '\t' .. from .. '\t' .. to .. message
end

-- When an instance ended: completed ones say it in `times`, others in a field of its own.
local function ended_at(own, times) return own or string.match(times or '', '^%S+ (%d+)') end

-- An instance has ended: event, waiters, and what to write into the index. The snapshot is written by the caller. That
-- it is paused no more is written down if it can be: its status says so too.
local function over(ctx, id, run, from, to, waiter, message, result)
  local tail = sub(run, -12)
  if from == 'paused' then try('SREM', ctx.prefix .. 'paused', id) end
  event(ctx, id, run, from, to, message)
  if waiter then tell(ctx, waiter, id, tail, result) end
  return ctx.at .. '\0' .. id .. '\0' .. tail
end

local function ended(ctx, done, ...) call('RPUSH', done, over(ctx, ...)) end

local function keep(errors, record)
  if call('LPUSH', errors, record) > KEPT then call('LTRIM', errors, 0, KEPT - 1) end
end

-- Last of all, and a failure here fails nothing.
local function send(ctx)
  local prefix, publish, hints = ctx.prefix, ctx.publish, ctx.hints
  for i = 1, #hints, 2 do try(publish, prefix .. 'mail:' .. hints[i], hints[i + 1]) end
  if #ctx.events > 0 then try(publish, prefix .. 'events', table.concat(ctx.events, '\n')) end
end


-- Part of settle: nodes that wait for signals; the keys and arguments are those in the header of settle.lua.
-- What the nodes of one instance wait for, and what came before; read once for each item with such a node.
local function awaiting(ctx, key)
  local r = call('HMGET', key, 'waits', 'signals')
  return { ctx = ctx, key = key, waits = r[1] or '', signals = r[2] or '', drop = {}, ready = {}, due = {} }
end

-- A node takes the oldest signal that came before, or waits from now on. What to store is added to `set`. One that has
-- its signal already, and was entered by an entry that stood twice, keeps it.
local function await(w, set, list, start, task, timeout, signal, record)
  local n, has, early, rest = #set, call('HSTRLEN', w.key, 'out:' .. task), pick(w.signals, signal)
  set[n + 1] = 'task:' .. task
  if has > 0 then
    set[n + 2], w.ready[#w.ready + 1] = 'ready' .. record, { list, start .. 'out:' .. task .. ' ' .. has }
    return
  end
  if early then
    local field = 'signal:' .. early
    local payload = call('HGET', w.key, field) or ''
    set[n + 2], set[n + 3], set[n + 4] = 'ready' .. record, 'out:' .. task, payload
    w.signals, w.drop[#w.drop + 1], w.taken = rest, field, true
    w.ready[#w.ready + 1] = { list, start .. 'out:' .. task .. ' ' .. #payload }
    return
  end
  set[n + 2] = 'waiting' .. record
  w.waits, w.more = w.waits .. ' ' .. signal .. '=' .. task .. '=' .. ARGV[6 + list], true
  if timeout then w.due[#w.due + 1] = { w.ctx.now + timeout, overdue(ARGV[6 + list], start, task) } end
end

-- What is stored beside the records, added to `set` too.
local function awaited(w, set)
  if w.more then set[#set + 1], set[#set + 2] = 'waits', w.waits end
  if w.taken and w.signals == '' then
    w.drop[#w.drop + 1] = 'signals'
  elseif w.taken then
    set[#set + 1], set[#set + 2] = 'signals', w.signals
  end
end

-- Behind the write of the snapshot: everything goes to its place.
local function place(w, id, queue)
  if w.taken then call('HDEL', w.key, unpack(w.drop)) end
  if w.more then call('SADD', w.ctx.prefix .. 'waiting', id) end
  for _, entry in ipairs(w.ready) do queue(entry[1], entry[2]) end
  for _, timer in ipairs(w.due) do delay(w.ctx, KEYS[4], timer[1], timer[2]) end
end

-- A node that was claimed waits, or has its signal already.
local function wait(ctx, key, a, queue)
  local waits, set = awaiting(ctx, key), {}
  await(waits, set, ARGV[a + 3], ARGV[a + 4], sub(ARGV[a], 6), tonumber(ARGV[a + 5]), ARGV[a + 6], sub(ARGV[a + 1], 8))
  awaited(waits, set)
  call('HSET', key, unpack(set))
  place(waits, ARGV[a + 2], queue)
  return 'stored'
end


-- Functions that change an instance: arguments for the transitions `signal`, `control` and `start`, and their answers in
-- words.
local function expect(at, reply, doing)
  local tag = type(reply) == 'table' and reply[1] or reply
  local id, status = at.id, type(reply) == 'table' and reply[3] or ''
  if tag == 'not-found' then fail('no instance `%s` in `%s`', id, at.ns) end
  if tag == 'unreadable' then fail('the record of `%s` cannot be read; it was left as it is', id) end
  if tag == 'format' then fail('`%s` was written by a newer version (format %s): install its functions', id, reply[2]) end
  if tag == 'over' then fail('`%s` is %s: it cannot be %s', id, status, doing) end
  if tag == 'already-paused' then fail('`%s` is paused already', id) end
  if tag == 'full' then fail('`%s` has 1000 signals that nothing has waited for yet', id) end
  if tag == 'exists' then fail('`%s` is there already, it is %s', id, status) end
  return tag
end

-- The run that is there, so that a repeat finds what it did; empty if there is none, which the transition says better.
local function run_of(at)
  local found = redis.pcall('HGET', at.prefix .. 'instance:' .. at.id, 'run')
  return type(found) == 'string' and found or ''
end

local function tenure_signal(keys, args)
  usage(args, 3, 5, 'tenure_signal <namespace> <id> <signal> [JSON] [id of the signal]')
  local at, name = place_of(keys, args, args[2]), args[3]
  named('the signal', name)
  local signal = args[5] or uuid(at)
  named('the id of the signal', signal)
  local p = at.prefix
  local reply = run(transition_signal,
    { p .. 'seq', p .. 'instance:' .. at.id, p .. 'waiting', p .. 'delayed', p .. 'woken', p .. 'lists', p .. 'meta' },
    { p, at.publish, at.guard, at.id, run_of(at), name, signal, pack_json(args[4] or '') })
  if reply[1] == 'not-awaited' then
    local names = string.gsub(string.gsub(reply[2], '^ ', ''), ' ', ', ')
    fail('the workflow of `%s` has no wait for the signal `%s`; it has: %s', at.id, name, names == '' and 'none' or names)
  end
  expect(at, reply, 'signalled')
  return redis.status_reply('OK')
end

-- What a person did, as the snapshot keeps it.
local function record(action, reason, actor)
  local function text(word) return word and word ~= '' and cmsgpack.pack(word) or '\192' end
  return table.concat({ '\131', cmsgpack.pack('control'), cmsgpack.pack(action), cmsgpack.pack('reason'), text(reason),
    cmsgpack.pack('actor'), text(actor) })
end

local STATUS = { cancel = 'cancelled', terminate = 'terminated', pause = 'paused', resume = 'running' }
local DOING = { cancel = 'cancelled', terminate = 'terminated', pause = 'paused', resume = 'resumed' }
local function control(action)
  return function(keys, args)
    usage(args, 2, 4, 'tenure_' .. action .. ' <namespace> <id> [reason] [actor]')
    local at = place_of(keys, args, args[2])
    if not utf8(args[3] or '') or not utf8(args[4] or '') then fail('reason and actor must be UTF-8') end
    local p, id = at.prefix, at.id
    local reply = run(transition_control,
      { p .. 'meta', p .. 'woken', p .. 'seq', p .. 'instance:' .. id, p .. 'errors:' .. id, p .. 'parked:' .. id,
        p .. 'paused', p .. 'lists', p .. 'delayed', p .. 'keeper', p .. 'waiting' },
      { p, at.publish, at.guard, action, id, run_of(at), string.sub(fresh(at), 1, 8), record(action, args[3], args[4]),
        STATUS[action], 1000 })
    local again = expect(at, reply, DOING[action]) == 'again'
    return redis.status_reply(again and 'AGAIN: more was parked than one call gives back, call it again' or 'OK')
  end
end

-- start: reads the published definition for what an instance begins with, as the engine does.
local POLICIES = { fail = true, ['use-existing'] = true, ['replace-finished'] = true, ['terminate-and-replace'] = true }

local function definition(at, workflow)
  local hash = redis.call('GET', '{' .. at.ns .. '}:workflow:' .. workflow)
  if not hash then
    local known = {}
    for _, pair in ipairs(redis.call('SMEMBERS', '{' .. at.ns .. '}:definitions')) do
      known[#known + 1] = string.match(pair, '^[^:]+')
    end
    table.sort(known)
    fail('no workflow `%s` was published in `%s`; there is: %s', workflow, at.ns, #known > 0 and table.concat(known, ', ') or 'none')
  end
  local ok, graph = pcall(cmsgpack.unpack, redis.call('GET', '{' .. at.ns .. '}:def:' .. hash) or '')
  if not ok or type(graph) ~= 'table' or graph.v ~= 1 then
    fail('the definition %s of `%s` cannot be read by these functions: install those of a newer version', hash, workflow)
  end
  return graph, hash
end

-- Milliseconds of a stored duration, rounded up, at most a thousand years.
local function milliseconds(d) return math.min(d.secs * 1000 + math.ceil(d.nanos / 1000000), 31536000000000) end

-- The first nodes: list, delay, task. One that waits for a signal is ready at first: an engine enters it.
local function firsts(graph, hash)
  local nodes, lists, known = {}, {}, {}
  for i, index in ipairs(graph.entry) do
    local node = graph.nodes[index + 1]
    local list = (node.queue or graph.queue or 'default') .. ':' .. hash
    if not known[list] then
      lists[#lists + 1] = list
      known[list] = #lists
    end
    local kind = type(node.kind) == 'table' and node.kind or {}
    if kind.join or not (node.kind == 'task' or kind.delay or kind.wait) then
      fail('`%s` begins with a node that these functions do not know: use the command `tenure`', graph.name)
    end
    nodes[i] = { task = node.name, list = known[list], delay = kind.delay and milliseconds(kind.delay) or 0 }
  end
  return nodes, lists
end

-- All signals that a node waits for, each once, in the order of the definition.
local function awaited(graph)
  local words, seen = {}, {}
  for _, node in ipairs(graph.nodes) do
    if type(node.kind) == 'table' and node.kind.wait then
      local name = node.signal or node.name
      if not seen[name] then words[#words + 1] = ' ' .. name end
      seen[name] = true
    end
  end
  return table.concat(words)
end

-- What stands in the snapshot from the start, names and values.
local MAX_CRASHES = 5
local function header(graph, hash, count)
  local about = table.concat({ graph.name, hash, graph.queue or 'default', MAX_CRASHES }, ' ')
  local fields = { 'about', about, 'v', '1', 'status', 'running' }
  local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
  if count > 1 then add('open', count) end
  local signals = awaited(graph)
  if signals ~= '' then add('awaits', signals) end
  if graph.on_exhausted == 'pause' then add('on_exhausted', 'pause') end
  return fields
end

local function tenure_start(keys, args)
  usage(args, 3, 5, 'tenure_start <namespace> <workflow> <id> [JSON] [fail|use-existing|replace-finished|terminate-and-replace]')
  named('the workflow', args[2])
  local policy = args[5] or 'fail'
  if not POLICIES[policy] then fail('`%s` is none of fail, use-existing, replace-finished, terminate-and-replace', policy) end
  if string.find(args[3], '/', 1, true) or string.find(args[3], '~.*~') or string.find('~' .. args[3] .. '~', '~~', 1, true) then
    fail('`%s` cannot be an id: no `/`, and at most one `~` between a placement and the rest', args[3])
  end
  local at = place_of(keys, args, args[3])
  local p, id, input = at.prefix, at.id, pack_json(args[4] or '')
  local graph, hash = definition(at, args[2])
  local nodes, lists = firsts(graph, hash)
  local fields, started = header(graph, hash, #nodes), uuid(at)
  local k = { p .. 'seq', p .. 'delayed', p .. 'keeper', p .. 'woken', p .. 'lists', p .. 'meta' }
  local a = { p, at.publish, #lists, 1, at.guard, '0' }
  local function add(...) for _, word in ipairs({ ... }) do a[#a + 1] = word end end
  for _, list in ipairs(lists) do
    k[#k + 1], k[#k + 2] = p .. 'ready:' .. list, p .. 'idle:' .. list
    add(list)
  end
  k[#k + 1] = p .. 'instance:' .. id
  add(1, policy, '', 0, #nodes)
  for _, node in ipairs(nodes) do add(node.task, node.list, node.delay) end
  add(#fields)
  for _, field in ipairs(fields) do add(field) end
  add(1, started, id, input, '')
  for _, node in ipairs(nodes) do
    add(table.concat({ id, node.task, string.sub(started, -12) .. 'input ' .. #input }, '\0'))
  end
  expect(at, run(transition_start, k, a)[1], 'started')
  return id
end

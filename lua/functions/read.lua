-- Functions that read: lines for a person, payloads as JSON.
local PAYLOAD = { input = true, out = true, progress = true, set = true, signal = true, meta = true, error = true, control = true }
local FIRST = { 'status', 'run', 'about', 'times', 'open', 'input' }

-- Names and values of an instance, those that people look for first in front.
local function fields_of(at)
  local flat = redis.call('HGETALL', at.prefix .. 'instance:' .. at.id)
  if #flat == 0 then fail('no instance `%s` in `%s`', at.id, at.ns) end
  local values, names, rank = {}, {}, {}
  for i, name in ipairs(FIRST) do rank[name] = i end
  for i = 1, #flat, 2 do values[flat[i]], names[#names + 1] = flat[i + 1], flat[i] end
  table.sort(names, function(a, b)
    local x, y = rank[a] or 99, rank[b] or 99
    if x ~= y then return x < y end
    return a < b
  end)
  return names, values
end

local function tenure_show(keys, args)
  usage(args, 2, 2, 'tenure_show <namespace> <id>')
  local at, lines = place_of(keys, args, args[2]), {}
  local names, values = fields_of(at)
  for _, name in ipairs(names) do
    local value = values[name]
    lines[#lines + 1] = name .. ': ' .. (PAYLOAD[string.match(name, '^%l+')] and json(value) or value)
  end
  for _, name in ipairs(names) do
    local key = at.prefix .. 'claim:' .. at.id .. ':' .. string.sub(name, 6)
    if string.find(values[name], '^running ') and string.sub(name, 1, 5) == 'task:' then
      lines[#lines + 1] = 'claim of ' .. string.sub(name, 6) .. ': ' .. (redis.call('GET', key) or 'no key')
        .. ', for ' .. redis.call('PTTL', key) .. ' ms'
    end
  end
  for i, record in ipairs(redis.call('LRANGE', at.prefix .. 'errors:' .. at.id, 0, 19)) do
    lines[#lines + 1] = 'error ' .. i .. ': ' .. json(record)
  end
  return lines
end

-- The result as JSON; nothing while the instance lives.
local function tenure_result(keys, args)
  usage(args, 2, 2, 'tenure_result <namespace> <id>')
  local at = place_of(keys, args, args[2])
  local key = at.prefix .. 'instance:' .. at.id
  local r = redis.call('HMGET', key, 'status', 'times', 'result', 'error')
  if not r[1] then fail('no instance `%s` in `%s`', at.id, at.ns) end
  if r[1] == 'running' or r[1] == 'paused' then return false end
  if r[1] ~= 'completed' then fail('`%s` is %s%s', at.id, r[1], r[4] and ': ' .. json(r[4]) or '') end
  local field = string.match(r[2] or '', '^%S+ %S+ (%S+)') or r[3]
  return json(field and redis.call('HGET', key, field) or '\192')
end

local DONE = { completed = true, failed = true, cancelled = true, terminated = true }

-- `<id> <task> <list>` of a ticket, or of an entry with its list.
local function line(ticket, more)
  local list, id, task = string.match(ticket, '^(%Z+)%z(%Z+)%z(%Z+)')
  return id and id .. ' ' .. task .. ' ' .. list .. (more or '') or 'unreadable'
end

-- Some members of a set.
local function members(set)
  return function(p, add, n)
    for _, id in ipairs(redis.call('SSCAN', p .. set, 0, 'COUNT', n)[2]) do add(id) end
  end
end

local LISTS = {
  waiting = members('waiting'),
  paused = members('paused'),
  running = function(p, add, n)
    for _, ticket in ipairs(redis.call('ZRANGE', p .. 'running', 0, n - 1)) do add(line(ticket)) end
  end,
  delayed = function(p, add, n)
    local due = redis.call('ZRANGE', p .. 'delayed', 0, n - 1, 'WITHSCORES')
    for i = 1, #due, 2 do add(line(due[i], ' due ' .. due[i + 1])) end
  end,
  ready = function(p, add, n)
    for _, list in ipairs(redis.call('SMEMBERS', p .. 'lists')) do
      for _, entry in ipairs(redis.call('LRANGE', p .. 'ready:' .. list, 0, n - 1)) do add(line(list .. '\0' .. entry)) end
    end
  end,
}
local function tenure_list(keys, args)
  usage(args, 2, 3, 'tenure_list <namespace> <status> [most lines, 20 if not given]')
  local what, n = args[2], tonumber(args[3] or 20)
  if not n or n < 1 or n > 1000 or n % 1 ~= 0 then fail('the number of lines must be 1 to 1000, it is `%s`', args[3]) end
  if not LISTS[what] and not DONE[what] then
    fail('`%s` is none of ready, running, delayed, waiting, paused, completed, failed, cancelled, terminated', what)
  end
  local lines = {}
  local function add(text) if #lines < n then lines[#lines + 1] = text end end
  for _, p in ipairs(prefixes(place(keys, args))) do
    if LISTS[what] then
      LISTS[what](p, add, n)
    else
      local newest = redis.call('LRANGE', p .. 'done:' .. what, -n, -1)
      for i = #newest, 1, -1 do add((string.gsub(newest[i], '^(%d+)%z(%Z+)%z.*$', '%2 ended %1'))) end
    end
  end
  return lines
end

local function tenure_counts(keys, args)
  usage(args, 1, 1, 'tenure_counts <namespace>')
  local counts, depths = {}, {}
  local function count(what, n) counts[what] = (counts[what] or 0) + n end
  for _, p in ipairs(prefixes(place(keys, args))) do
    for _, list in ipairs(redis.call('SMEMBERS', p .. 'lists')) do
      local depth = redis.call('LLEN', p .. 'ready:' .. list)
      count('ready', depth)
      depths[list] = (depths[list] or 0) + depth
    end
    for _, what in ipairs({ 'running', 'delayed' }) do count(what, redis.call('ZCARD', p .. what)) end
    for _, what in ipairs({ 'waiting', 'paused' }) do count(what, redis.call('SCARD', p .. what)) end
    for what in pairs(DONE) do count(what, redis.call('LLEN', p .. 'done:' .. what)) end
  end
  local lines = {}
  for _, what in ipairs({ 'ready', 'running', 'delayed', 'waiting', 'paused', 'completed', 'failed', 'cancelled', 'terminated' }) do
    lines[#lines + 1] = what .. ' ' .. (counts[what] or 0)
  end
  local names = {}
  for list in pairs(depths) do names[#names + 1] = list end
  table.sort(names)
  for _, list in ipairs(names) do lines[#lines + 1] = 'ready in ' .. list .. ' ' .. depths[list] end
  return lines
end

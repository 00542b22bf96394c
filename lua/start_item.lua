-- Part of start: what items have in common, and one item. Shares the state of the call with the part behind it; the keys
-- and arguments are those in the header of start.lua.
local NOTHING, ctx = {}, begin(ARGV[1], ARGV[2])
local lists, items, kinds, replies, pushed, touched = tonumber(ARGV[3]), tonumber(ARGV[4]), {}, {}, {}, false
local at, first = 8 + lists, 6 + 2 * lists

-- What items have in common. When its nodes are due is the same for all of them.
local function kind()
  local from, follows, nodes, fields = at, tonumber(ARGV[at + 3]), {}, {}
  local time, base = ARGV[from + 1], tonumber(ARGV[from + 2])
  if time ~= '' then base = math.max(0, time - ctx.now) end
  at = from + 4 + 3 * follows
  local last = at + ARGV[at]
  fields = { unpack(ARGV, at + 1, last) }
  fields[2] = fields[2] .. ' ' .. ctx.at
  for i = 1, follows do
    local n = from + 1 + 3 * i
    local wait = base + ARGV[n + 2]
    nodes[i] = { ARGV[n + 1], wait }
    fields[#fields + 1], fields[#fields + 2] = 'task:' .. ARGV[n], (wait > 0 and 'delayed' or 'ready') .. ' 0 - 0 0 - -'
  end
  at = last + 1
  return { policy = ARGV[from], nodes = nodes, fields = fields }
end

-- What the policy says about an instance that is there; nothing means: replace it.
local function taken(policy, run, status, version)
  if policy == 'use-existing' then return { 'existing', run, status } end
  if policy == 'fail' or (policy == 'replace-finished' and (status == 'running' or status == 'paused')) then
    return { 'exists', run, status }
  end
  if version ~= '1' then return { 'format', version or '' } end
end

-- An answer about what is there; nothing means: start.
local function known(old, policy, run)
  if old.err then return foreign(old) and 'unreadable' end
  if old[1] == run then return 'started' end
  if old[3] and find(old[3], run, 1, true) then return 'superseded' end
  if old[1] then return taken(policy, old[1], old[2], old[4]) end
  if old[4] then return 'unreadable' end
end

local function left_by(id) return ctx.prefix .. 'errors:' .. id, ctx.prefix .. 'parked:' .. id end

local function clear(old, key, id)
  if old[2] == 'running' or old[2] == 'paused' then
    local tail = sub(old[1], -12)
    close(ctx, key, id, tail)
    if old[2] == 'paused' then try('SREM', ctx.prefix .. 'paused', id) end
    event(ctx, id, old[1], old[2], 'terminated')
    tell(ctx, old[5], id, tail)
  end
  call('UNLINK', key, left_by(id))
  local replaced = old[1] .. (old[3] and ' ' .. old[3] or '')
  call('HSET', key, 'replaced', sub(replaced, 1, REPLACED))
end

-- The snapshot, and its timers. What is ready stands in the lists already.
local function store(item)
  local kind, key, old, a = item.kind, item.key, item.old, item.a
  local run, id, input, meta = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  if old[1] then clear(old, key, id) end
  if meta == '' then
    call('HSET', key, 'run', run, 'input', input, unpack(kind.fields))
  else
    call('HSET', key, 'run', run, 'input', input, 'meta', meta, unpack(kind.fields))
  end
  for i, node in ipairs(kind.nodes) do
    if node[2] > 0 then
      delay(ctx, KEYS[2], ctx.now + node[2], ARGV[6 + node[1]] .. '\0' .. ARGV[a + 4 + i])
    end
  end
end


-- Put behind the transitions in the library of functions: what the functions have in common. Errors are for a person:
-- `fail` ends a call with a text, before anything was written.
local function fail(...) error({ plain = string.format(...) }, 0) end

-- A function as Redis calls it: what `fail` said is the error of the call, everything else is raised again.
local function guarded(work)
  return function(keys, args)
    local ok, reply = pcall(work, keys, args)
    if ok then return reply end
    if type(reply) == 'table' and reply.plain then return redis.error_reply('ERR ' .. reply.plain) end
    local text = type(reply) == 'table' and reply.err or tostring(reply)
    if string.find(text, 'non local key', 1, true) or string.find(text, 'not hash to the same slot', 1, true) then
      return redis.error_reply('ERR on a cluster this needs data of another node: use the command `tenure` instead')
    end
    return error(reply, 0)
  end
end

local function usage(args, least, most, text)
  if #args < least or #args > most then fail('usage: %s', text) end
  if not string.find(args[1], '^[%w_.-]+$') or #args[1] > 64 then fail('`%s` is no namespace', args[1]) end
end

local function named(kind, name)
  if not string.find(name, '^[%w_.-]+$') or #name > 64 then
    fail('%s must be 1 to 64 of A-Z a-z 0-9 _ . -, it is `%s`', kind, name)
  end
end

-- What is not ASCII, by the table of well-formed byte sequences.
local WIDE = {
  '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
  '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
  '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]',
}

local function utf8(text)
  for _, pattern in ipairs(WIDE) do text = string.gsub(text, pattern, ' ') end
  return not string.find(text, '[\128-\255]')
end

-- CRC16 (XMODEM) of the placement or root of an id: which partition it lives in.
local function home(id, partitions)
  local crc = 0
  for byte in string.gmatch(string.match(id, '^[^/~]*'), '.') do
    crc = bit.bxor(crc, bit.lshift(string.byte(byte), 8))
    for _ = 1, 8 do
      crc = bit.lshift(crc, 1)
      if crc >= 0x10000 then crc = bit.bxor(crc, 0x11021) end
    end
  end
  return crc % 16384 % partitions
end

-- Where a call works (Redis says its version in scripts since 7.0, and has channels that stay on a node since then): on one server without keys; on a cluster a key of a partition brings it to the right node.
local function place(keys, args)
  local ns, key = args[1], keys[1]
  local own = key and string.match(key, '^{' .. string.gsub(ns, '%p', '%%%0') .. ':(%d+)}:')
  if key and not own then fail('the key must be one of a partition of `%s`, such as {%s:0}:meta', ns, ns) end
  local about = redis.pcall('INFO', 'cluster')
  -- Who may not ask and gives a key means a cluster: what is too careful there costs nothing but a poll here.
  local cluster = key ~= nil
  if type(about) == 'string' then cluster = string.find(about, 'cluster_enabled:1', 1, true) ~= nil end
  if cluster and not key then
    fail('this is a cluster: give the key of a partition, `… 1 {%s:0}:meta %s …`', ns, ns)
  end
  local meta = own and '{' .. ns .. ':' .. own .. '}:meta' or '{' .. ns .. '}:meta'
  local count = tonumber(redis.call('HGET', meta, 'partitions'))
  if not count then fail('nothing is stored under the namespace `%s`: no worker or client has been here', ns) end
  return { ns = ns, own = tonumber(own), partitions = count, guard = cluster and '1' or '0',
    publish = cluster and redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH' }
end

-- The same for one instance: its partition's prefix as well.
local function place_of(keys, args, id)
  if #id < 1 or #id > 256 or string.find(id, '%c') or string.find(id, '\194[\128-\159]') or not utf8(id) then
    fail('an id must be 1 to 256 bytes of UTF-8 without control characters')
  end
  local at = place(keys, args)
  local p = home(id, at.partitions)
  if at.own and at.own ~= p then
    fail('`%s` lives in partition %d: give the key {%s:%d}:meta', id, p, at.ns, p)
  end
  at.id, at.prefix = id, '{' .. at.ns .. ':' .. p .. '}:'
  return at
end

-- The partitions that a call over all of them looks at: on a cluster that of its key.
local function prefixes(at)
  if at.own then return { '{' .. at.ns .. ':' .. at.own .. '}:' } end
  local all = {}
  for p = 0, at.partitions - 1 do all[p + 1] = '{' .. at.ns .. ':' .. p .. '}:' end
  return all
end

-- 20 bytes in hexadecimal that come once: two calls differ in the time, the count of transitions, or what they are about.
local function fresh(at)
  local time = redis.call('TIME')
  local hex = redis.sha1hex(table.concat({ time[1], time[2], redis.call('GET', at.prefix .. 'seq') or '', at.prefix, at.id }, ' '))
  return hex, string.format('%012x', time[1] * 1000 + math.floor(time[2] / 1000))
end

-- A UUIDv7: 48 bits of milliseconds, then what is fresh.
local function uuid(at)
  local hex, ms = fresh(at)
  local variant = string.format('%x', 8 + tonumber(string.sub(hex, 4, 4), 16) % 4)
  return table.concat({ string.sub(ms, 1, 8), string.sub(ms, 9, 12), '7' .. string.sub(hex, 1, 3),
    variant .. string.sub(hex, 5, 7), string.sub(hex, 8, 19) }, '-')
end

-- The last of all: calls a transition, which takes texts.
local function run(transition, keys, args)
  for i = 1, #args do args[i] = tostring(args[i]) end
  return transition(keys, args)
end

-- snapshot: reads all of an instance but its payloads, as they are at one moment. Changes nothing.
-- KEYS     1 instance hash
-- DERIVED  none
-- ARGV     none
-- RETURNS  not-found | unreadable | {snapshot, fields, payloads}: names and values, names and lengths in bytes
-- COST     O(fields): one HKEYS, one HMGET, one HSTRLEN for each payload
-- CALLED   RedisStore::snapshot
local names = try('HKEYS', KEYS[1])
if names.err then return foreign(names) and 'unreadable' end
if #names == 0 then return 'not-found' end
local plain, fields, payloads = {}, {}, {}
for _, name in ipairs(names) do
  local kind = string.match(name, '^(%l+):') or name
  if kind == 'input' or kind == 'out' or kind == 'progress' or kind == 'set' or kind == 'signal' then
    payloads[#payloads + 1], payloads[#payloads + 2] = name, call('HSTRLEN', KEYS[1], name)
  else
    plain[#plain + 1] = name
  end
end
for from = 1, #plain, 1000 do
  local till = math.min(from + 999, #plain)
  for i, value in ipairs(call('HMGET', KEYS[1], unpack(plain, from, till))) do
    fields[#fields + 1], fields[#fields + 2] = plain[from + i - 1], value
  end
end
return { 'snapshot', fields, payloads }

-- census: some of the keys of a partition, each with its type. Changes nothing.
-- KEYS     1 any key of the hash slot: finds the node
-- DERIVED  every key that matches
-- ARGV     1 cursor, 0 at first · 2 pattern · 3 how many keys to look at
-- RETURNS  the next cursor (0 when all have been looked at), then for each key: its name, its type
-- COST     O(keys looked at)
-- CALLED   Doctor::examine
local found = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local reply = { found[1] }
for _, key in ipairs(found[2]) do
  reply[#reply + 1], reply[#reply + 2] = key, call('TYPE', key).ok
end
return reply

-- remove: deletes some of the keys of a namespace, whatever they hold. Not a transition: nothing may be working on it.
-- KEYS     1 any key of the hash slot: finds the node
-- DERIVED  every key that matches
-- ARGV     1 cursor, 0 at first · 2 pattern · 3 how many keys to look at
-- RETURNS  the next cursor; 0 when all have been looked at
-- COST     O(keys looked at)
-- CALLED   RedisStore::remove_namespace
local found = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
if #found[2] > 0 then call('UNLINK', unpack(found[2])) end
return found[1]

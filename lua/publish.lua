-- publish: stores a definition; the first publication of a hash moves the name to it.
-- KEYS     1 {ns}:def:<hash> string · 2 {ns}:workflow:<name> string · 3 {ns}:definitions set
-- DERIVED  none
-- ARGV     1 hash · 2 definition · 3 `<name>:<hash>`
-- RETURNS  published | known
-- COST     O(1)
-- CALLED   RedisStore::publish
call('SADD', KEYS[3], ARGV[3])
if call('EXISTS', KEYS[1]) == 1 then
  if call('EXISTS', KEYS[2]) == 0 then call('SET', KEYS[2], ARGV[1]) end
  return 'known'
end
call('SET', KEYS[2], ARGV[1])
call('SET', KEYS[1], ARGV[2])
return 'published'

-- note: running → running: what a running task says of itself and what the tasks of its instance share, fenced as a
-- settlement is. Grows: when memory is used up it is refused, as a start is.
-- KEYS     1 seq counter · 2 instance hash
-- DERIVED  none
-- ARGV     1 field `task:<t>` · 2 run · 3 record as claimed · 4 field `noted:<t>` · 5 attempt and number of the note
--          6 number of the note · 7 most shared values · then for each: field, value
-- RETURNS  noted | full | lost | cancelled | gone
-- COST     O(fields)
-- CALLED   RedisStore::note
local key, fresh = KEYS[2], 0
local r = try('HMGET', key, 'run', 'status', ARGV[1], ARGV[4], 'sets')
if r.err then return foreign(r) and 'lost' end
if not r[1] then return 'gone' end
if r[1] ~= ARGV[2] then return 'lost' end
if r[2] ~= 'running' and r[2] ~= 'paused' then return 'cancelled' end
if r[3] ~= ARGV[3] then return 'lost' end
local attempt, number = string.match(r[4] or '', '^(%d+) (%d+)$')
local mine = string.match(ARGV[5], '^%d+')
-- A repeat: what came after it stays.
if attempt == mine and tonumber(number) >= tonumber(ARGV[6]) then return 'noted' end
for i = 8, #ARGV, 2 do
  if sub(ARGV[i], 1, 4) == 'set:' then fresh = fresh + 1 - call('HEXISTS', key, ARGV[i]) end
end
local sets = tonumber(r[5] or '0') + fresh
if fresh > 0 and sets > tonumber(ARGV[7]) then return 'full' end
call('INCR', KEYS[1])
call('HSET', key, ARGV[4], ARGV[5], 'sets', sets, unpack(ARGV, 8))
return 'noted'

-- watch: a mailbox asks to hear of the end of a run; answers with the header as it is.
-- KEYS     1 instance hash
-- DERIVED  none
-- ARGV     1 run · 2 mailbox
-- RETURNS  not-found | unreadable | {header, v, run, status, about, times, result, error, control}; what is
--          not there is empty
-- COST     O(1)
-- CALLED   RedisStore::watch
local LIMIT = 16
local r = try('HMGET', KEYS[1], 'v', 'run', 'status', 'about', 'times', 'result', 'error', 'control', 'waiter')
if r.err then return foreign(r) and 'unreadable' end
if not r[1] and not r[2] then return 'not-found' end
if r[1] == '1' and r[2] == ARGV[1] and (r[3] == 'running' or r[3] == 'paused') then
  local boxes = {}
  for box in string.gmatch(r[9] or '', '%S+') do
    if box ~= ARGV[2] then boxes[#boxes + 1] = box end
  end
  boxes[#boxes + 1] = ARGV[2]
  local waiter = table.concat(boxes, ' ', math.max(1, #boxes - LIMIT + 1))
  if waiter ~= r[9] then call('HSET', KEYS[1], 'waiter', waiter) end
end
local header = { 'header' }
for i = 1, 8 do header[i + 1] = r[i] or '' end
return header

-- Put in front of the prelude: what stands in the texts of a snapshot.
-- `<state> <attempt> <nonce> <failures> <crashes> <worker> <deadline>`
local function fields(record)
  return string.match(record or '', '^(%l+) (%d+) (%S+) (%d+) (%d+) (%S+) (%S+)$')
end

-- ` <signal>=<task>=<list>` for each node of `waits`, ` <name>=<id>` for each signal of `signals`, in their order.
-- Takes the first ` <word>=<rest>` out of a text of such: the rest of it, and what is left of the text.
local function pick(words, word)
  local from, equals = string.find(words, ' ' .. word .. '=', 1, true)
  if from then
    local ends = string.find(words, ' ', equals, true) or #words + 1
    return string.sub(words, equals + 1, ends - 1), string.sub(words, 1, from - 1) .. string.sub(words, ends)
  end
end

-- The timer of a node that waits for a signal; `start` is its entry up to the ref.
local function overdue(list, start, task) return list .. '\0' .. start .. '!out:' .. task .. ' 0' end

-- An instance that ends waits for no signal any more: its timers go, and it is not among those that wait.
local function unwait(ctx, key, id, tail)
  local timers = {}
  for task, list in string.gmatch(redis.call('HGET', key, 'waits') or '', '=([^ =]+)=([^ =]+)') do
    timers[#timers + 1] = overdue(list, id .. '\0' .. task .. '\0' .. tail, task)
  end
  redis.call('SREM', ctx.prefix .. 'waiting', id)
  if #timers > 0 then redis.call('ZREM', ctx.prefix .. 'delayed', unpack(timers)) end
  redis.call('HDEL', key, 'waits')
end


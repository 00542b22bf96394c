-- JSON to MessagePack and back, byte by byte: `cmsgpack` would make `[]` of `{}`, cut what is deeper than 16, and lose whole
-- numbers beyond 2^53. What JSON cannot hold is shown as the command line shows it, and is not read back.
-- While a library is loaded there is no `string` yet.
local function byte(...) return string.byte(...) end

local function head(count, fix, limit, two, four)
  if count < limit then return string.char(fix + count) end
  return count < 65536 and two .. struct.pack('>I2', count) or four .. struct.pack('>I4', count)
end

local function number(word)
  if string.find(word, '^%-?%d+$') then
    local n = tonumber(word)
    if math.abs(n) >= 9007199254740992 then
      fail('the whole number %s is beyond 2^53: a script cannot hold it; use the command `tenure`', word)
    end
    return cmsgpack.pack(n)
  end
  if not string.find(word, '^%-?%d+%.?%d*[eE]?[+-]?%d*$') then fail('`%s` is not JSON', word) end
  return '\203' .. struct.pack('>d', tonumber(word))
end

-- Walks through a text that `cjson` has found to be JSON.
local WORDS = { ['true'] = '\195', ['false'] = '\194', null = '\192' }
local function pack_json(text)
  local at = 1
  local function skip(pattern) at = string.find(text, pattern, at) or #text + 1 end
  local function quoted()
    local from, i = at, at
    repeat
      i = string.find(text, '["\\]', i + 1)
      local escape = byte(text, i) == 92
      if escape then i = i + 1 end
    until not escape
    at = i + 1
    return cmsgpack.pack(cjson.decode('[' .. string.sub(text, from, i) .. ']')[1])
  end
  local function value()
    skip('[^%s]')
    local first = string.sub(text, at, at)
    if first == '"' then return quoted() end
    if first ~= '[' and first ~= '{' then
      local word = string.match(text, '^[^%s,%]}]+', at) or ''
      at = at + #word
      return WORDS[word] or number(word)
    end
    local parts, close = {}, first == '[' and ']' or '}'
    at = at + 1
    skip('[^%s,:]')
    while string.sub(text, at, at) ~= close do
      parts[#parts + 1] = value()
      skip('[^%s,:]')
    end
    at = at + 1
    local body = table.concat(parts)
    if first == '[' then return head(#parts, 0x90, 16, '\220', '\221') .. body end
    if #parts == 2 and string.find(parts[1], '^.%$%l+$') then
      fail('an object with the single key `%s` means what JSON cannot hold: use the command `tenure`', string.sub(parts[1], 2))
    end
    return head(#parts / 2, 0x80, 16, '\222', '\223') .. body
  end
  if text == '' then return '\192' end
  local ok, why = pcall(cjson.decode, text)
  if not ok then fail('the payload is not JSON: %s', (string.gsub(tostring(why), '^.-: ', ''))) end
  if not utf8(text) then fail('the payload is not UTF-8') end
  return value()
end

local DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
local function base64(bytes)
  local out = {}
  for i = 1, #bytes, 3 do
    local a, b, c = byte(bytes, i, i + 2)
    local n = a * 65536 + (b or 0) * 256 + (c or 0)
    for k, there in ipairs({ a, a, b, c }) do
      local d = math.floor(n / 64 ^ (4 - k)) % 64 + 1
      out[#out + 1] = there and string.sub(DIGITS, d, d)
    end
    out[#out + 1] = not b and '==' or not c and '=' or nil
  end
  return table.concat(out)
end

local function string_of(text)
  if not utf8(text) then return '{"$string":"' .. base64(text) .. '"}' end
  return (string.gsub(cjson.encode(text), '\\/', '/'))
end

-- A whole number of two halves, exactly.
local function wide(sign, high, low)
  if high < 0x200000 then
    local text = sign .. string.format('%.0f', high * 4294967296 + low)
    return text == '-0' and '0' or text
  end
  local a, b = high * 4294, high * 967296 + low
  return string.format('{"$int":"%s%.0f%06.0f"}', sign, a + math.floor(b / 1000000), b % 1000000)
end

local function float(n)
  if n ~= n then return '{"$float":"NaN"}' end
  if n == math.huge or n == -math.huge then return '{"$float":"' .. (n < 0 and '-' or '') .. 'Infinity"}' end
  local text = string.format('%.15g', n)
  if tonumber(text) ~= n then text = string.format('%.17g', n) end
  return string.find(text, '[.e]') and text or text .. '.0'
end

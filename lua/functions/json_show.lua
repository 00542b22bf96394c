-- MessagePack to JSON, by the table of the command line. What is no MessagePack is shown as bytes.
local SIZES = { [0] = '>I1', '>I2', '>I4' }
local function json(bytes)
  local at, value = 1, nil
  local function take(format)
    local v, after = struct.unpack(format, bytes, at)
    at = after
    return v
  end
  local function raw(size)
    if at + size - 1 > #bytes then error('short') end
    at = at + size
    return string.sub(bytes, at - size, at - 1)
  end
  local function array(count)
    local parts = {}
    for i = 1, count do parts[i] = value() end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  local function map(count)
    local pairs_, members, plain, seen = {}, {}, true, {}
    for i = 1, count do
      local key = value()
      local of = value()
      plain = plain and byte(key) == 34 and not seen[key] and not (count == 1 and byte(key, 2) == 36)
      seen[key], members[i], pairs_[i] = true, key .. ':' .. of, '[' .. key .. ',' .. of .. ']'
    end
    if plain then return '{' .. table.concat(members, ',') .. '}' end
    return '{"$map":[' .. table.concat(pairs_, ',') .. ']}'
  end
  local function extension(size)
    local kind = take('>i1')
    return '{"$ext":[' .. kind .. ',"' .. base64(raw(size)) .. '"]}'
  end
  local function signed()
    local high, low = take('>I4'), take('>I4')
    if high < 0x80000000 then return wide('', high, low) end
    high, low = 0xffffffff - high, 0x100000000 - low
    if low == 0x100000000 then high, low = high + 1, 0 end
    return wide('-', high, low)
  end
  function value()
    local b = take('>I1')
    if b < 0x80 then return tostring(b) end
    if b < 0x90 then return map(b - 0x80) end
    if b < 0xa0 then return array(b - 0x90) end
    if b < 0xc0 then return string_of(raw(b - 0xa0)) end
    if b >= 0xe0 then return tostring(b - 256) end
    if b == 0xc0 then return 'null' end
    if b == 0xc2 or b == 0xc3 then return tostring(b == 0xc3) end
    if b >= 0xc4 and b <= 0xc6 then return '{"$bytes":"' .. base64(raw(take(SIZES[b - 0xc4]))) .. '"}' end
    if b >= 0xc7 and b <= 0xc9 then return extension(take(SIZES[b - 0xc7])) end
    if b == 0xca or b == 0xcb then return float(take(b == 0xca and '>f' or '>d')) end
    if b >= 0xcc and b <= 0xce then return string.format('%.0f', take(SIZES[b - 0xcc])) end
    if b == 0xcf then
      local high = take('>I4')
      return wide('', high, take('>I4'))
    end
    if b >= 0xd0 and b <= 0xd2 then return string.format('%.0f', take(string.lower(SIZES[b - 0xd0]))) end
    if b == 0xd3 then return signed() end
    if b >= 0xd4 and b <= 0xd8 then return extension(2 ^ (b - 0xd4)) end
    if b >= 0xd9 and b <= 0xdb then return string_of(raw(take(SIZES[b - 0xd9]))) end
    if b == 0xdc or b == 0xdd then return array(take(SIZES[b - 0xdb])) end
    if b == 0xde or b == 0xdf then return map(take(SIZES[b - 0xdd])) end
    error('unknown')
  end
  local ok, text = pcall(value)
  if ok and at == #bytes + 1 then return text end
  return '{"$bytes":"' .. base64(bytes) .. '"}'
end

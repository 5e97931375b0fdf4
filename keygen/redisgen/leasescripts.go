// SPDX-License-Identifier: Apache-2.0

package redisgen

// The hash of a namespace has the fields
//
//	server                the server's run_id at the last access
//	followed              the server's master_replid2 at the last access, without leading zeros
//	longest               the longest term so far, in microseconds
//	safe                  microseconds since 1970: all lost ceilings lie before
//	layout, epoch, unit   the layout of ceilings; epoch and unit in microseconds
//	floor                 the tick before which no lease begins
//	o:7 h:7 g:7 c:7 e:7   owner, holder, generation, ceiling and era of worker id 7
//
// Each fail-over raises safe, so its value also identifies the fail-over: the era. Ticks and
// microseconds are below 2^53, up to which Lua's numbers are exact.
//
// A server has a new run_id after each start. So a restart counts as a fail-over, too, because
// nobody can tell what the server's file had lost. A master that became a replica, and has the
// data of another master since then, keeps its run_id when it is promoted again. But its
// master_replid2 is then the replication id of that other master. It is all zeros in a server
// that never was a replica, and again when a promoted one has had no replica for an hour, which
// is not a fail-over. Namespaces of versions that did not store it have no field followed.

// leaseLibrary is the common first part of the scripts.
//
//nolint:dupword // this is Lua
const leaseLibrary = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then return 'anonymous' end
local followed = string.match(redis.call('INFO', 'replication'), 'master_replid2:0*(%w*)') or ''
local h = {}
local flat = redis.call('HGETALL', key)
for i = 1, #flat, 2 do h[flat[i]] = flat[i + 1] end
local function number(name) return tonumber(h[name] or '0') end
local function text(n) return string.format('%.0f', n) end
local function set(name, value)
  if type(value) == 'number' then value = text(value) end
  if h[name] ~= value then
    h[name] = value
    redis.call('HSET', key, name, value)
  end
end
local function ticks(micros) return math.floor((micros - number('epoch')) / number('unit')) end
local function meet(term)
  local longest = math.max(number('longest'), term)
  local promoted = followed ~= '' and (h['followed'] or followed) ~= followed
  if h['server'] ~= run or promoted then
    set('safe', math.max(now + 2 * longest, number('safe') + 1))
    set('server', run)
  end
  set('followed', followed)
  set('longest', longest)
end
`

const createScript = `
if not h['server'] then
  set('server', run)
  set('followed', followed)
  set('longest', 0)
  set('safe', 0)
end
return 'ok'`

// takeScript's arguments are the layout, its epoch and unit, the term, the owner, the holder,
// the highest worker id and whether the holder is sticky.
//
//nolint:dupword // this is Lua
const takeScript = `
local term, owner, holder, most, sticky = tonumber(ARGV[4]), ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8] == '1'
meet(term)
if not h['layout'] then
  set('layout', ARGV[1])
  set('epoch', ARGV[2])
  set('unit', ARGV[3])
  set('floor', 0)
end
if h['layout'] ~= ARGV[1] then return 'layout ' .. h['layout'] end
local tick, floor = ticks(now), number('floor')
if tick < 0 then return 'early' end
local own, last, rested, count, held, names = nil, nil, nil, 0, 0, {}
while h['c:' .. count] do
  local ceiling = number('c:' .. count)
  if h['o:' .. count] == owner then own = count end
  if count <= most then
    if sticky and h['h:' .. count] == holder and not last then last = count end
    if ceiling > math.max(tick, floor) then
      held = held + 1
      if #names < 3 then table.insert(names, h['h:' .. count]) end
    elseif not rested or ceiling < number('c:' .. rested) then
      rested = count
    end
  end
  count = count + 1
end
local unused = nil
if count <= most then unused = count end
local id = own or last
if not id and sticky then id = unused or rested end
id = id or rested or unused
if not id then
  if held > #names then table.insert(names, 'others') end
  return 'full ' .. held .. ' ' .. table.concat(names, ', ')
end
local first = math.max(tick, ticks(number('safe')), floor, number('c:' .. id))
local ceiling = math.max(tick + math.floor(term / number('unit')), first)
set('g:' .. id, number('g:' .. id) + 1)
set('o:' .. id, owner)
set('h:' .. id, holder)
set('e:' .. id, number('safe'))
set('c:' .. id, ceiling)
return 'ok ' .. id .. ' ' .. h['g:' .. id] .. ' ' .. text(first) .. ' ' .. text(ceiling)`

// renewScript's arguments are the layout, the term, the owner, the worker id and its
// generation.
const renewScript = `
local term, id = tonumber(ARGV[2]), ARGV[4]
if not h['layout'] then return 'lost is unknown: Redis has lost the namespace' end
meet(term)
if h['layout'] ~= ARGV[1] then return 'lost belongs to a namespace with another layout now: ' .. h['layout'] end
if not h['c:' .. id] or h['o:' .. id] ~= ARGV[3] or h['g:' .. id] ~= ARGV[5] then return 'lost is held by ' .. (h['h:' .. id] or 'nobody') end
if h['e:' .. id] ~= h['safe'] then return 'lost was leased before Redis failed over or restarted' end
set('c:' .. id, math.max(number('c:' .. id), ticks(now) + math.floor(term / number('unit'))))
return 'ok ' .. h['c:' .. id]`

// returnScript's arguments are the owner, the worker id, its generation and the end.
const returnScript = `
local id = ARGV[2]
if h['o:' .. id] == ARGV[1] and h['g:' .. id] == ARGV[3] then
  set('o:' .. id, '')
  set('c:' .. id, ARGV[4])
end
return 'ok'`

// surveyScript's argument is the layout to be changed. It returns the number of leases in
// force, the end of the last lease of all, and one holder.
const surveyScript = `
if h['layout'] ~= ARGV[1] then return 'other' end
local held, last, holder, id = 0, now, '', 0
while h['c:' .. id] do
  local ends = number('epoch') + number('c:' .. id) * number('unit')
  if h['o:' .. id] ~= '' and ends > now then
    held = held + 1
    holder = h['h:' .. id]
  end
  last = math.max(last, ends)
  id = id + 1
end
return 'ends ' .. held .. ' ' .. text(last) .. ' ' .. holder`

// changeScript's arguments are the layout to be changed, the next one, its epoch and unit, and
// the floor in ticks of it and in microseconds. It changes nothing if a lease was taken since
// the survey.
const changeScript = `
if h['layout'] ~= ARGV[1] then return 'other' end
local id = 0
while h['c:' .. id] do
  local ends = number('epoch') + number('c:' .. id) * number('unit')
  if ends > tonumber(ARGV[6]) or h['o:' .. id] ~= '' and ends > now then return 'other' end
  id = id + 1
end
while id > 0 do
  id = id - 1
  set('o:' .. id, '')
  set('g:' .. id, number('g:' .. id) + 1)
  set('c:' .. id, ARGV[5])
end
set('layout', ARGV[2])
set('epoch', ARGV[3])
set('unit', ARGV[4])
set('floor', ARGV[5])
return 'ok'`

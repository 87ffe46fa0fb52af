import {
  GRACE_MS,
  MAX_WAIT_MS,
  MAX_WINDOW_MS,
  PARDON_MS,
  PENALTY_MS,
  SLOT_WAIT_MS,
} from '../../middleware/rate-limit/index.ts'
import { CLOCK, MAX_LEASE_MS } from './limit-scripts.ts'

/** How long after an early retry the note that excuses it may come from another process, in milliseconds. */
const PARDON_LATE_MS = 250

/**
 * Gives back and decides what one process has gathered in a turn of its event loop: first the returned slots, then the
 * ended calls, then the demands in their order. It admits or refuses each demand as a whole. Counters are laid out as in
 * rate-limiter-flexible: an integer that expires with its window. What several demands look at is read once and written
 * once at the end, because no other script runs and no key expires until then.
 *
 * KEYS: the counters, the sets of slots, the senders' waits; each once.
 * ARGV: now or '', lease, number of counters, number of sets, then a flat list of numbers and ids as JSON. It names each
 * key by its place among those of its sort:
 * - how many sets get slots back; for each its place, number of ids, the ids
 * - of how many senders calls ended; for each the place of its wait, number of calls
 * - how many demands; for each its id, the place of its wait, window, number of counters, number of sets, then place,
 *   cost and limit of each counter, then place and limit of each set.
 * Returns: now, and a JSON list with for each demand: which limit refused it (from 1; 0: none), the wait or what is left of
 * the sender's, then what is used and left of the window for each of its counters. Times are milliseconds. A demand that
 * needs a key which does not hold what it should is not decided: it gets -1 and the place of that key in KEYS.
 */
export const DECIDE = `${CLOCK}
local lease, counters, sets = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local asked, at = cjson.decode(ARGV[5]), 1
local waits = counters + sets

-- The keys that hold something else. They fail those who need them, and nobody else in the batch.
local broken = {}

-- Runs a command on the key at a place. Returns nil if the key is of another type. Any other error ends the script, with
-- the error's own text.
local function run(k, name, ...)
  local reply = redis.pcall(name, KEYS[k], ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return redis.call(name, KEYS[k], ...) end
  broken[k] = true
end

-- Returns a stored number. A text of another form, or a number that cannot be counted on exactly, breaks its key.
local function whole(k, text)
  if not text then return nil end
  if string.find(text, '^%-?%d+$') and #text <= 16 then return tonumber(text) end
  broken[k] = true
end

local function waitOf(k)
  local noted = run(k, 'HMGET', 'since', 'told', 'until', 'pardons', 'slotDue', 'earlyAt', 'by', 'prolonged', 'most')
  if not noted then return end
  for i = 1, 6 do noted[i] = whole(k, noted[i]) end
  if noted[2] and not (noted[1] and noted[3]) then broken[k] = true end
  if not broken[k] then return noted end
end

-- A Redis that is full takes whatever comes behind a removal. This changes nothing, and fails there as a demand alone does.
if asked[1] > 0 then run(counters + 1, 'ZADD', 'XX', 0, '') end
for _ = 1, asked[1] do
  local ids = asked[at + 2]
  run(counters + asked[at + 1], 'ZREM', unpack(asked, at + 3, at + 2 + ids))
  at = at + 2 + ids
end

-- A call that ended during a wait excuses an early retry: see "ended" of a limit store. Its caller may have been faster at
-- another process than this note; then the penalty is taken back.
at = at + 1
for _ = 1, asked[at] do
  local k, calls = waits + asked[at + 1], asked[at + 2]
  at = at + 2
  local noted = waitOf(k) or {}
  local since, told, till, pardons, earlyAt = noted[1], noted[2], noted[3], noted[4] or 0, noted[6]
  if told and now >= since + ${PARDON_MS} and now < told and till - now <= ${MAX_WINDOW_MS} then
    if earlyAt and now - earlyAt <= ${PARDON_LATE_MS} then
      redis.call('HSET', KEYS[k], 'until', math.max(told, till - ${PENALTY_MS}))
      redis.call('HDEL', KEYS[k], 'earlyAt')
      calls = calls - 1
    end
    redis.call('HSET', KEYS[k], 'pardons', pardons + calls)
  end
end

-- Returns the end of a wait after an early retry. No penalty reaches further than this from now, and none shortens.
local function prolonged(till)
  return math.max(till, math.min(till + ${PENALTY_MS}, now + ${MAX_WAIT_MS}))
end

local used, left, begun, added, waitless = {}, {}, {}, {}, {}
local held, joining, swept, leaseEnd = {}, {}, {}, now + lease

local function join(k)
  redis.call('ZADD', KEYS[k], unpack(joining[k]))
  -- Another process may have longer leases.
  redis.call('PEXPIRE', KEYS[k], math.max(lease, redis.call('PTTL', KEYS[k])))
end

-- Counts a set that seems full again, without leases that are over, and each id once.
local function recount(k)
  local new = joining[k]
  if swept[k] and not new then return end
  if new then
    join(k)
    joining[k] = nil
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[k], '-inf', now)
  -- A lease that seems longer than any may be is from before the clock was set back. If its process lives, it renews it.
  local last = now + ${MAX_LEASE_MS}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[k], '(' .. last, '+inf')) do
    redis.call('ZADD', KEYS[k], last, id)
  end
  swept[k] = true
  held[k] = redis.call('ZCARD', KEYS[k])
end

if counters > 0 then used = redis.call('MGET', unpack(KEYS, 1, counters)) end
for k = 1, counters do
  left[k] = redis.call('PTTL', KEYS[k])
  -- MGET reads a key of another type as none.
  if not used[k] and left[k] ~= -2 then broken[k] = true end
  used[k] = whole(k, used[k]) or 0
  if left[k] <= 0 then used[k] = 0 end
end

local reply, said = {}, 0
at = at + 1
local demands = asked[at]
for _ = 1, demands do
  local id, sender, window, charges, slots = asked[at + 1], asked[at + 2], asked[at + 3], asked[at + 4], asked[at + 5]
  local waitAt, costs = waits + sender, at + 6
  local waitKey = KEYS[waitAt]
  local places = costs + 3 * charges
  at = places + 2 * slots - 1
  local refusedBy, wait, pardons, rest = 0, 0, 0, 0
  local fault

  for i = 1, charges do
    local k = asked[costs + 3 * i - 3]
    if broken[k] then fault = k end
    local remaining = left[k]
    if remaining <= 0 then remaining = window end
    if remaining > window then
      -- The clock was set back. No window is longer than a window.
      remaining, left[k] = window, window
      if begun[k] then begun[k] = window else redis.call('PEXPIRE', KEYS[k], window) end
    end
    if used[k] + asked[costs + 3 * i - 2] > asked[costs + 3 * i - 1] and remaining > wait then
      refusedBy, wait = i, remaining
    end
  end
  for i = 1, slots do
    local k = counters + asked[places + 2 * i - 2]
    if not held[k] then held[k] = run(k, 'ZCARD') end
    if broken[k] then fault = k end
  end

  if not fault and charges > 0 and (refusedBy > 0 or not waitless[sender]) then
    local noted = waitOf(waitAt)
    if not noted then
      fault, noted = waitAt, {}
    end
    local since, told, till = noted[1], noted[2], noted[3]
    -- A wait that seems longer than any may be is from before the clock was set back.
    local waiting = told ~= nil and now < till and till - now <= math.max(${MAX_WAIT_MS}, window)
    waitless[sender] = not waiting
    -- A wait belongs to the limit that refused, and concerns no demand without it, nor one for which it was raised since.
    local waitsFor, most = 0, tonumber(noted[9]) or math.huge
    for i = 1, charges do
      local isIt = KEYS[asked[costs + 3 * i - 3]] == noted[7]
      if isIt and asked[costs + 3 * i - 1] <= most then waitsFor = i end
    end
    waiting = waiting and waitsFor > 0
    pardons = waiting and noted[4] or 0
    rest = waiting and math.max(0, told - now) or 0
    local calm = since
    -- A sender that was refused a slot may come back then.
    local slotDue = noted[5]
    if waiting and slotDue and slotDue <= now + ${SLOT_WAIT_MS} then calm = math.max(since, slotDue) end
    -- From the time on that was told first a caller may have waited.
    local early = waiting and pardons == 0 and now > calm + ${GRACE_MS} and now < told
    local owed = waiting and noted[8] == '1'
    if owed then
      refusedBy = waitsFor
      if early then till = prolonged(till) end
      wait = till - now
    elseif refusedBy > 0 and not fault then
      local due = now + wait
      if waiting and now < told then told = math.min(told, due) else since, told, pardons = now, due, 0 end
      if early then
        local latest = math.max(due, till)
        owed = prolonged(latest) > latest
        if owed then due = prolonged(latest) end
      end
      till, wait = due, due - now
    end
    if refusedBy > 0 and not fault then
      redis.call('HSET', waitKey, 'since', since, 'told', told, 'until', till,
        'by', KEYS[asked[costs + 3 * refusedBy - 3]], 'most', asked[costs + 3 * refusedBy - 1],
        'prolonged', owed and '1' or '0', 'pardons', math.max(pardons - 1, 0))
      if early then redis.call('HSET', waitKey, 'earlyAt', now) end
      redis.call('PEXPIRE', waitKey, wait)
      waitless[sender] = false
    end
  end
  if fault then refusedBy, wait = -1, fault end

  if refusedBy == 0 then
    for i = 1, slots do
      local k, most = counters + asked[places + 2 * i - 2], asked[places + 2 * i - 1]
      if held[k] >= most then recount(k) end
      if held[k] >= most and not redis.call('ZSCORE', KEYS[k], id) then
        refusedBy, wait = charges + i, ${SLOT_WAIT_MS}
        if charges > 0 then
          redis.call('HSET', waitKey, 'slotDue', now + ${SLOT_WAIT_MS})
          local least = ${SLOT_WAIT_MS + GRACE_MS}
          if redis.call('PTTL', waitKey) < least then redis.call('PEXPIRE', waitKey, least) end
        end
        break
      end
    end
  end

  local admitted = refusedBy == 0
  if admitted and pardons > 0 then redis.call('HSET', waitKey, 'pardons', pardons - 1) end
  reply[said + 1], reply[said + 2] = refusedBy, admitted and rest or wait
  said = said + 2
  for i = 1, charges do
    local k = asked[costs + 3 * i - 3]
    local cost = asked[costs + 3 * i - 2]
    if admitted then
      used[k], added[k] = used[k] + cost, (added[k] or 0) + cost
      if left[k] <= 0 then left[k], begun[k] = window, window end
    end
    local count = used[k]
    -- A list writes numbers with 14 digits.
    if count >= 1e14 then count = string.format('%.0f', count) end
    reply[said + 1], reply[said + 2] = count, left[k] > 0 and left[k] or window
    said = said + 2
  end
  if admitted then
    for i = 1, slots do
      local k = counters + asked[places + 2 * i - 2]
      local new = joining[k]
      if new then new[#new + 1], new[#new + 2] = leaseEnd, id else joining[k] = { leaseEnd, id } end
      held[k] = held[k] + 1
    end
  end
end

for k = 1, counters do
  if begun[k] then redis.call('SET', KEYS[k], added[k], 'PX', begun[k])
  elseif added[k] then redis.call('INCRBY', KEYS[k], added[k]) end
end
for k in pairs(joining) do join(k) end
return { now, '[' .. table.concat(reply, ',') .. ']' }`

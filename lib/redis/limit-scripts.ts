/** Redis's own time, so that processes whose clocks differ agree; a test gives its own. */
const CLOCK = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end`

/**
 * Admits or refuses a demand in one step, so that no process ever sees half of it: it looks at everything before it
 * changes anything. Counters are laid out as rate-limiter-flexible does: an integer that expires with its window.
 *
 * KEYS: the sender's wait, the counters, the sets of slots.
 * ARGV: now or '', window, number of counters, slot id, lease, most wait, wait for a slot, grace, prolongation, then
 * cost and limit of each counter, then the limit of each set. Times are milliseconds.
 * Returns: which refused (from 1; 0: none), the wait or what is left of the sender's, now, then what is used and left of the window for each counter.
 */
export const ADMIT = `${CLOCK}
local window, charges, id, lease = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local mostWait, slotWait, grace, prolongation = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local reply = { 0, 0, now }
local refusedBy, wait, pardons, rest = 0, 0, 0, 0

for i = 1, charges do
  local used = tonumber(redis.call('GET', KEYS[1 + i]) or 0)
  local left = redis.call('PTTL', KEYS[1 + i])
  if left <= 0 then used, left = 0, window end
  if left > window then
    -- The clock was set back: the window ends when it is as long as it may be.
    left = window
    redis.call('PEXPIRE', KEYS[1 + i], window)
  end
  if used + ARGV[8 + 2 * i] > tonumber(ARGV[9 + 2 * i]) and left > wait then refusedBy, wait = i, left end
  reply[2 + 2 * i], reply[3 + 2 * i] = used, left
end

if charges > 0 then
  local noted = redis.call('HMGET', KEYS[1], 'since', 'told', 'until', 'by', 'prolonged', 'pardons', 'slotDue')
  local since, told, till = tonumber(noted[1]), tonumber(noted[2]), tonumber(noted[3])
  -- None is longer than that: one that seems to be was noted before the clock was set back.
  local waiting = told ~= nil and now < till and till - now <= mostWait
  pardons = waiting and tonumber(noted[6]) or 0
  rest = waiting and math.max(0, told - now) or 0
  local calm = since
  -- Whoever was refused a slot was told to come back then.
  local slotDue = tonumber(noted[7])
  if waiting and slotDue and slotDue <= now + slotWait then calm = math.max(since, slotDue) end
  -- Whoever comes from the time on that was told first may have waited.
  local early = waiting and pardons == 0 and now > calm + grace and now < told
  local owed = waiting and noted[5] == '1'
  if owed then
    refusedBy = 1
    for i = 1, charges do if KEYS[1 + i] == noted[4] then refusedBy = i end end
    if early then till = math.min(till + prolongation, now + mostWait) end
    wait = till - now
  elseif refusedBy > 0 then
    local due = now + wait
    if waiting and now < told then told = math.min(told, due) else since, told, pardons = now, due, 0 end
    if early then due = math.min(math.max(due, till) + prolongation, now + mostWait) end
    till, wait = due, due - now
  end
  if refusedBy > 0 then
    redis.call('HSET', KEYS[1], 'since', since, 'told', told, 'until', till, 'by', KEYS[1 + refusedBy],
      'prolonged', (owed or early) and '1' or '0', 'pardons', math.max(pardons - 1, 0))
    if early then redis.call('HSET', KEYS[1], 'earlyAt', now) end
    redis.call('PEXPIRE', KEYS[1], wait)
  end
end

if refusedBy == 0 then
  for i = 2 + charges, #KEYS do
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
    if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[8 + charges + i]) and not redis.call('ZSCORE', KEYS[i], id) then
      refusedBy, wait = i - 1, slotWait
      if charges > 0 then
        redis.call('HSET', KEYS[1], 'slotDue', now + slotWait)
        if redis.call('PTTL', KEYS[1]) < slotWait + grace then redis.call('PEXPIRE', KEYS[1], slotWait + grace) end
      end
      break
    end
  end
end

reply[1], reply[2] = refusedBy, refusedBy > 0 and wait or rest
if refusedBy > 0 then return reply end

if pardons > 0 then redis.call('HINCRBY', KEYS[1], 'pardons', -1) end
for i = 1, charges do
  local key, cost = KEYS[1 + i], ARGV[8 + 2 * i]
  if redis.call('PTTL', key) > 0 then
    reply[2 + 2 * i] = redis.call('INCRBY', key, cost)
  else
    redis.call('SET', key, cost, 'PX', window)
    reply[2 + 2 * i] = tonumber(cost)
  end
end
for i = 2 + charges, #KEYS do
  redis.call('ZADD', KEYS[i], now + lease, id)
  redis.call('PEXPIRE', KEYS[i], lease)
end
return reply`

/**
 * Notes that calls ended during a wait, which whoever made them has not been told of: see `ended` of a limit store. The
 * caller of such a call may have been faster at another process than this note of it: where a request has just been
 * counted as early, that is taken back.
 *
 * KEYS: the sender's wait. ARGV: now or '', most wait, how long after the refusal it counts, prolongation, how late it
 * may come, number of calls.
 */
export const PARDON = `${CLOCK}
local noted = redis.call('HMGET', KEYS[1], 'since', 'told', 'until', 'earlyAt')
local since, told, till, earlyAt = tonumber(noted[1]), tonumber(noted[2]), tonumber(noted[3]), tonumber(noted[4])
local calls = tonumber(ARGV[6])
if not told or now < since + ARGV[3] or now >= told or till - now > tonumber(ARGV[2]) then return 0 end
if earlyAt and now - earlyAt <= tonumber(ARGV[5]) then
  redis.call('HSET', KEYS[1], 'until', math.max(told, till - ARGV[4]))
  redis.call('HDEL', KEYS[1], 'earlyAt')
  calls = calls - 1
end
return redis.call('HINCRBY', KEYS[1], 'pardons', calls)`

/**
 * Renews leases, and takes those that are not there: a slot whose call runs counts, whatever Redis forgot meanwhile.
 *
 * KEYS: a set of slots. ARGV: now or '', lease, then the ids.
 */
export const RENEW = `${CLOCK}
local lease = tonumber(ARGV[2])
for i = 3, #ARGV do redis.call('ZADD', KEYS[1], now + lease, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], lease)
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)`

/**
 * Takes a charge back from the window that it was made in, unless that ends within 300 ms or is over: a count that
 * were lowered in the next one would let too many through.
 *
 * KEYS: a counter. ARGV: now or '', cost, when its window ends.
 */
export const REFUND = `${CLOCK}
local left = redis.call('PTTL', KEYS[1])
local same = math.abs(now + left - ARGV[3]) <= 5
if left <= 300 or not same or tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[2]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[2])
return 1`

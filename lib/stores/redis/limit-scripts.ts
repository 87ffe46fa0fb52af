/** The longest lease of a slot, in milliseconds. */
export const MAX_LEASE_MS = 30_000

/** Sets `now` to Redis's own time, on which all processes agree, or to the time that the app gives. */
export const CLOCK = `
local now = tonumber(ARGV[1])
if now then
  now = math.floor(now)
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end`

/**
 * Renews leases, and takes slots that Redis has forgotten: their calls run. A key of another type is left as it is: it fails
 * those who ask for a slot of it.
 *
 * KEYS: a set of slots. ARGV: now or '', lease, then the ids.
 */
export const RENEW = `${CLOCK}
local lease = tonumber(ARGV[2])
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then return 0 end
for i = 3, #ARGV do redis.call('ZADD', KEYS[1], now + lease, ARGV[i]) end
-- Another process may have longer leases.
redis.call('PEXPIRE', KEYS[1], math.max(lease, redis.call('PTTL', KEYS[1])))
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)`

/**
 * Takes a charge back from its window, unless that is over or ends within 300 ms: lowering the count of the next window
 * would let too many requests through.
 *
 * KEYS: a counter. ARGV: now or '', cost, when its window ends.
 */
export const REFUND = `${CLOCK}
local left = redis.call('PTTL', KEYS[1])
local same = math.abs(now + left - ARGV[3]) <= 5
if left <= 300 or not same or tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[2]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[2])
return 1`

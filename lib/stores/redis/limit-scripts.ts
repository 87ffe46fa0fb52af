/** Redis's own time, so that processes whose clocks differ agree; a test gives its own. */
export const CLOCK = `
local now = tonumber(ARGV[1])
if now then
  now = math.floor(now)
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end`

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

/*
 * A record is a hash: owner, fingerprint, state, expires (milliseconds since the epoch), answer (for repetitions). `expires` decides. The key's own
 * expiry comes later and only frees memory.
 */

/**
 * KEYS: the record. ARGV: owner, fingerprint, now, lease until, life of the key.
 * Returns: nil when the claim is taken, else owner, fingerprint, state, expiry and answer of the existing record.
 */
export const CLAIM = `
local record = redis.call('HMGET', KEYS[1], 'owner', 'fingerprint', 'state', 'expires', 'answer')
local own = record[1] == ARGV[1] and record[3] == 'running'
if record[1] and tonumber(record[4]) > tonumber(ARGV[3]) and not own then return record end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'fingerprint', ARGV[2], 'state', 'running', 'expires', ARGV[4])
redis.call('HDEL', KEYS[1], 'answer')
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return false`

/** KEYS: the record. ARGV: owner, lease until, life of the key. Returns 1 while the owner holds it. */
export const RENEW_CLAIM = `
local record = redis.call('HMGET', KEYS[1], 'owner', 'state')
if record[1] ~= ARGV[1] or record[2] ~= 'running' then return 0 end
redis.call('HSET', KEYS[1], 'expires', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

/** KEYS: the record. ARGV: owner, keep until, life of the key, answer if there is one. Returns 1 if it is this owner's. */
export const COMPLETE = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', 'completed', 'expires', ARGV[2])
if ARGV[4] then redis.call('HSET', KEYS[1], 'answer', ARGV[4]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`

/** KEYS: the record. ARGV: owner. */
export const RELEASE = `
local record = redis.call('HMGET', KEYS[1], 'owner', 'state')
if record[1] ~= ARGV[1] or record[2] ~= 'running' then return 0 end
return redis.call('DEL', KEYS[1])`

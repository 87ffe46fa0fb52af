export { RedisIdempotencyStore, type RedisIdempotencyStoreOptions } from './redis-idempotency-store.ts'
export { RedisLimitStore, type RedisLimitStoreOptions } from './redis-limit-store.ts'
export { RedisLineStateStore, type RedisLineStateStoreOptions } from './redis-line-state-store.ts'
export type { RedisClient } from './redis-script.ts'

export { type IpSubjectOptions, ipSubject } from './ip-subject.ts'
export type { HeaderStyle } from './limit-headers.ts'
export { accountLevel, keyLevel, type LimitLevel, type LimitValue, type OfRequest } from './limit-levels.ts'
export {
  type Count,
  type Demand,
  GRACE_MS,
  type Limit,
  type LimitKind,
  type LimitStore,
  MAX_WAIT_MS,
  MAX_WINDOW_MS,
  PARDON_MS,
  PENALTY_MS,
  SLOT_WAIT_MS,
  type Verdict,
} from './limit-store.ts'
export { LimiterStore, type LimiterStoreOptions } from './limiter-store.ts'
export { MemoryLimitStore } from './memory-limit-store.ts'
export { rateLimit } from './rate-limit.ts'
export type { RateLimitOptions } from './rate-limit-plan.ts'

export {
  type Count,
  type Demand,
  type Limit,
  LimiterStore,
  type LimiterStoreOptions,
  type LimitKind,
  type LimitStore,
  NEVER_REACHED,
  type Verdict,
} from '../../core/limit-store/index.ts'
export { accountLevel, keyLevel, type LimitLevel, type LimitValue, type OfRequest } from './demand.ts'
export { type IpSubjectOptions, ipSubject } from './ip-subject.ts'
export type { HeaderStyle } from './limit-headers.ts'
export { MemoryLimitStore } from './memory-limit-store.ts'
export { type RateLimitOptions, rateLimit } from './rate-limit.ts'

export { Batcher } from './batcher.ts'
export {
  type Count,
  type Demand,
  type Limit,
  type LimitKind,
  type LimitStore,
  MAX_WAIT_MS,
  MAX_WINDOW_MS,
  type Verdict,
  WINDOW_END_MS,
} from './limit-store.ts'
export { LimiterStore, type LimiterStoreOptions, NEVER_REACHED } from './limiter-store.ts'
export { MemorySlots, type SlotStore } from './slots.ts'

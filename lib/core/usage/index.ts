export { FineRows, MAX_FINE_ROWS } from './fine-rows.ts'
export { MemoryUsageStore } from './memory-usage-store.ts'
export { isFailed, NOT_KNOWN, shareOfCharge, shareOfEntry, usageOfEntry } from './usage-of.ts'
export { isFine, type UsageGroup, type UsageQuery, type UsageRow, type UsageStore } from './usage-store.ts'
export {
  type CallUsage,
  durationOf,
  HOUR_MS,
  type UsageShare,
  UsageSums,
} from './usage-sums.ts'

export { FineRows, MAX_FINE_ROWS } from './fine-rows.ts'
export { MemoryUsageStore } from './memory-usage-store.ts'
export {
  NOT_KNOWN,
  shareOfCharge,
  shareOfEntry,
  usageOfCall,
  usageOfEntry,
  usageOfPart,
} from './usage-of.ts'
export { isFine, type UsageGroup, type UsageQuery, type UsageRow, type UsageStore } from './usage-store.ts'
export {
  type CallUsage,
  durationOf,
  HOUR_MS,
  type UsageShare,
  UsageSums,
} from './usage-sums.ts'

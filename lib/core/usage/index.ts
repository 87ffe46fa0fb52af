export { FineRows, MAX_FINE_ROWS } from './fine-rows.ts'
export { MemoryUsageStore } from './memory-usage-store.ts'
export { isFine, type UsageGroup, type UsageQuery, type UsageRow, type UsageStore } from './usage-store.ts'
export {
  CALL_COUNTS,
  type CallUsage,
  countedAt,
  countsOf,
  durationOf,
  HOUR_MS,
  isOf,
  MINUTE_MS,
  MINUTES_KEPT_MS,
  NOT_KNOWN,
  shareOfCharge,
  shareOfEntry,
  type UsageDimensions,
  type UsageShare,
  UsageSums,
  usageOfCall,
  usageOfEntry,
  usageOfPart,
} from './usage-sums.ts'

export { FineRows, MAX_FINE_ROWS } from './fine-rows.ts'
export { MemoryUsageStore } from './memory-usage-store.ts'
export { isFine, type UsageGroup, type UsageQuery, type UsageRow, type UsageStore } from './usage-store.ts'
export {
  type CallUsage,
  durationOf,
  HOUR_MS,
  type HourlyUsage,
  isOf,
  NOT_KNOWN,
  shareOfCharge,
  shareOfEntry,
  type UsageShare,
  UsageSums,
  usageOfCall,
  usageOfEntry,
  usageOfPart,
} from './usage-sums.ts'

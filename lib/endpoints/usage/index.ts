export { MemoryUsageStore, type UsageQuery, type UsageRow, type UsageStore } from '../../core/usage/index.ts'
export { type UsageRoutesOptions, usageRoutes } from './usage.ts'
export type { UsageAnswer, UsageRowAnswer } from './usage-rows.ts'

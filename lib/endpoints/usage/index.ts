export { type UsageRoutesOptions, usageRoutes } from './usage.ts'
export type { UsageAnswer, UsageRowAnswer } from './usage-rows.ts'

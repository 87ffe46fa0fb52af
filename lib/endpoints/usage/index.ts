export { type UsageRoutesOptions, usageRoutes } from './usage.ts'

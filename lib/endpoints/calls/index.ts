export { type CallLogRoutesOptions, callLogRoutes } from './calls.ts'

export {
  type AttemptSummary,
  type BillingSummary,
  type CallLogEntry,
  entryOf,
  type LimitSummary,
  type RequestSummary,
  type RoutingSummary,
  type UsageSummary,
} from '../call/index.ts'
export { type CallLogOptions, callLog } from './call-log.ts'
export { CallLogWriter, type CallLogWriterOptions } from './call-log-writer.ts'
export type { CallQuery, CallStore } from './call-store.ts'
export { MemoryCallStore, type MemoryCallStoreOptions } from './memory-call-store.ts'
export { type CallLogRoutesOptions, callLogRoutes } from './read-calls.ts'

export type {
  AttemptSummary,
  BillingSummary,
  CallLogEntry,
  LimitSummary,
  RequestSummary,
  RoutingSummary,
  UsageSummary,
} from '../../core/call/index.ts'
export {
  type CallPage,
  type CallQuery,
  type CallStore,
  MemoryCallStore,
  type MemoryCallStoreOptions,
} from '../../core/call-store/index.ts'
export { type CallLogOptions, callLog } from './call-log.ts'
export { CallLogWriter, type CallLogWriterOptions } from './call-log-writer.ts'
export { CoalescedEntries } from './coalesced-entries.ts'

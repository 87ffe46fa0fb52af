export { type AnswerFilter, type GuardTrace, joinedFilter, type StreamFilter } from './answer-filter.ts'
export { readAttribution, readTags, userOf } from './attribution.ts'
export {
  amountOf,
  type BillingSummary,
  type BillingTrace,
  type ChargeItem,
  CURRENCY,
  type HeldPart,
  heldInput,
  heldOutput,
  itemOf,
  NO_BILLING,
  type ServedBy,
} from './billing-trace.ts'
export type { Call, KeyWatch } from './call.ts'
export {
  type AttemptSummary,
  bytesOfEntry,
  type CallLogEntry,
  entryOf,
  type LateCharge,
  type LimitSummary,
  lineOf,
  type RequestSummary,
  type RoutingSummary,
  type UsageSummary,
  withLateCharge,
} from './call-log-entry.ts'
export {
  type AccountLimits,
  accountLimitsOf,
  type KeyLimits,
  keyLimitsOf,
  type PartialLimits,
} from './caller-limits.ts'
export {
  filterAnswer,
  holdEnd,
  holdLastByte,
  holdLastByteOf,
  isHeldBack,
  unfiltered,
  watchHead,
} from './held-answer.ts'
export { isRead } from './http-method.ts'
export type * from './line-request.ts'
export { consoleLogger, type Logger, quietLogger } from './logger.ts'
export {
  type CallOptions,
  callOf,
  type EarlyRefuser,
  OpenCall,
  openCall,
  openedCallOf,
} from './open-call.ts'
export {
  hasRole,
  noteOperator,
  type Operator,
  operatorOf,
  ROLES,
  type Role,
} from './operator.ts'
export type * from './parts.ts'
export { bodyFor, requestFor } from './request-for-model.ts'
export { isRequestId, newRequestId } from './request-id.ts'
export { noteEnvelope, noteEnvelopeUsed } from './unused-envelope.ts'
export { noteUpgrade, type Upgrade, type UpgradedSession, upgradeOf } from './upgraded.ts'
export { prepareEnvelope, writeRefusal } from './write-refusal.ts'

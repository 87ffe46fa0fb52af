export { readAttribution, readTags, userOf } from './attribution.ts'
export {
  amountOf,
  type BillingSummary,
  type BillingTrace,
  type ChargeItem,
  type HeldPart,
  heldInput,
  heldOutput,
  itemOf,
  NO_BILLING,
  type ServedBy,
} from './billing-trace.ts'
export { Call, type CallOptions, callOf, type KeyWatch, openCall, UNASKED, type Unasked } from './call.ts'
export { bytesOfEntry, entryOf, lineOf } from './call-entry.ts'
export type {
  AttemptSummary,
  CallLogEntry,
  LimitSummary,
  RequestSummary,
  RoutingSummary,
  UsageSummary,
} from './call-log-entry.ts'
export type { EarlyRefuser } from './early-refuser.ts'
export { freeSpent } from './free-spent.ts'
export { holdEnd, holdLastByte, holdLastByteOf, isHeldBack } from './hold-end.ts'
export { type LateCharge, withLateCharge } from './late-charge.ts'
export type * from './line-request.ts'
export { consoleLogger, type Logger, quietLogger } from './logger.ts'
export {
  hasRole,
  noteOperator,
  type Operator,
  operatorOf,
  ROLES,
  type Role,
} from './operator.ts'
export type * from './parts.ts'
export { isRequestId, newRequestId } from './request-id.ts'
export { noteEnvelope } from './unread-envelope.ts'
export { noteUpgrade, type Upgrade, type UpgradedSession, upgradeOf } from './upgraded.ts'

export { type Call, callOf, type Logger, openCall, ROLES, type Role } from './core/call/index.ts'
export type { Catalog } from './core/catalog/index.ts'
export type { ChangeLog } from './core/change-log/index.ts'
export { ConfigError, type GatewayConfig, type LoadedConfig, loadConfig } from './core/config/index.ts'
export { ERROR_CODES, type ErrorCode, GatewayError } from './core/errors/index.ts'
export { StoreAway, StoreGuard, type StoreGuardOptions } from './core/store-guard/index.ts'
export { MemoryUsageStore, type UsageQuery, type UsageRow, type UsageStore } from './core/usage/index.ts'
export { type AccountRoutesOptions, accountRoutes } from './endpoints/account/index.ts'
export { callLogRoutes } from './endpoints/calls/index.ts'
export { type ModelRoutesOptions, modelRoutes } from './endpoints/models/index.ts'
export { STORED_RESPONSE_PATH, storedResponse } from './endpoints/responses/index.ts'
export {
  MemoryTicketStore,
  type TicketStore,
  ticketRoutes,
} from './endpoints/tickets/index.ts'
export { type UsageRoutesOptions, usageRoutes } from './endpoints/usage/index.ts'
export {
  MemoryTaskStore,
  TaskSettler,
  type TaskStore,
  VIDEO_CREATE_PATHS,
  VIDEO_PATHS,
  type VideoEndpointsOptions,
  videoEndpoints,
} from './endpoints/video/index.ts'
export {
  Budgets,
  type BudgetsOptions,
  LeasePool,
  type LeasePoolOptions,
  type Ledger,
  type LedgerBooks,
  MemoryLedger,
} from './ledger/index.ts'
export {
  type AccountStore,
  type AdminAccess,
  type AdminRoutesOptions,
  adminAccess,
  adminRoutes,
  adminTicketRoutes,
  type BudgetStore,
  type KeyStore,
  KeyUses,
  type LineSwitchStore,
  type OperatorStore,
  type SessionStore,
  setSessionCookie,
} from './management/index.ts'
export {
  type AuthenticateOptions,
  authenticate,
  type KeyDirectory,
  memoryKeyDirectory,
} from './middleware/authenticate/index.ts'
export {
  type BeginCallOptions,
  beginCall,
  Connections,
  cutStalledCallers,
  isWebSocketRequest,
  refuseUnparsed,
  type ServerRefusals,
  serverRefusals,
  type UpgradeHandler,
  upgradeHandler,
} from './middleware/begin-call/index.ts'
export { type BillingGuardOptions, billingGuard } from './middleware/billing-guard/index.ts'
export { CallLogWriter, callLog, MemoryCallStore } from './middleware/call-log/index.ts'
export { type ErrorEnvelopeOptions, errorEnvelope, unknownPath } from './middleware/error-envelope/index.ts'
export { type ForwardOptions, forward, forwardTo } from './middleware/forward/index.ts'
export {
  type IdempotencyOptions,
  idempotency,
  MemoryIdempotencyStore,
} from './middleware/idempotency/index.ts'
export {
  ipSubject,
  type LimitLevel,
  type LimitStore,
  MemoryLimitStore,
  type RateLimitOptions,
  rateLimit,
} from './middleware/rate-limit/index.ts'
export { type ReadRequestOptions, readRequest } from './middleware/read-request/index.ts'
export {
  MemoryResourceStore,
  type ReferencesOptions,
  references,
  UpstreamResources,
} from './middleware/references/index.ts'
export {
  LineAccess,
  LineRegistry,
  LineSharing,
  LineSwitches,
  type RouteOptions,
  route,
  type Strategy,
} from './middleware/route/index.ts'
export { StoreWatch, type TelemetryOptions, telemetry, VideoCharges } from './middleware/telemetry/index.ts'

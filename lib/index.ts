export { type AccountRoutesOptions, accountRoutes } from './account/index.ts'
export {
  type AccountStore,
  type AdminRoutesOptions,
  adminAccess,
  adminRoutes,
  type KeyStore,
  type LineSwitchStore,
  MemoryAccountStore,
  MemoryKeyStore,
  MemoryLineSwitchStore,
} from './admin/index.ts'
export {
  type AuthenticateOptions,
  authenticate,
  type KeyDirectory,
  memoryKeyDirectory,
} from './authenticate/index.ts'
export { type BeginCallOptions, beginCall, messageClassesOf } from './begin-call/index.ts'
export {
  type BillingGuardOptions,
  billingGuard,
  LeasePool,
  type LeasePoolOptions,
  type Ledger,
  type LedgerBooks,
  MemoryLedger,
} from './billing-guard/index.ts'
export { type Call, callOf, type Logger, openCall } from './call/index.ts'
export { CallLogWriter, callLog, callLogRoutes, MemoryCallStore } from './call-log/index.ts'
export { type Catalog, ConfigError, type GatewayConfig, loadConfig } from './catalog/index.ts'
export { type ChangeLog, MemoryChangeLog } from './change-log/index.ts'
export { type ErrorEnvelopeOptions, errorEnvelope, unknownPath } from './error-envelope/index.ts'
export { ERROR_CODES, type ErrorCode, GatewayError } from './errors/index.ts'
export { type IdempotencyOptions, idempotency, MemoryIdempotencyStore } from './idempotency/index.ts'
export { type ModelRoutesOptions, modelRoutes } from './models/index.ts'
export {
  type LimitLevel,
  type LimitStore,
  MemoryLimitStore,
  type RateLimitOptions,
  rateLimit,
} from './rate-limit/index.ts'
export { type ReadRequestOptions, readRequest } from './read-request/index.ts'
export {
  MemoryResponseStore,
  pinResponse,
  ResponseKeeper,
  STORED_RESPONSE_PATH,
  storedResponse,
} from './responses/index.ts'
export {
  type ForwardOptions,
  forward,
  forwardTo,
  LineAccess,
  LineRegistry,
  LineSwitches,
  type RouteOptions,
  route,
  type Strategy,
} from './route/index.ts'
export { StoreWatch, type TelemetryOptions, telemetry, VideoCharges } from './telemetry/index.ts'
export { MemoryTicketStore, type TicketStore, ticketDeskRoutes, ticketRoutes } from './tickets/index.ts'
export { isWebSocketRequest, type UpgradeHandler, upgradeHandler } from './upgrade/index.ts'
export {
  MemoryTaskStore,
  TaskSettler,
  type TaskStore,
  VIDEO_CREATE_PATHS,
  VIDEO_PATHS,
  type VideoEndpointsOptions,
  videoEndpoints,
} from './video/index.ts'

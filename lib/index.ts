export { type Call, callOf, type Logger } from './core/call/public.ts'
export type { Catalog } from './core/catalog/index.ts'
export { ConfigError, type GatewayConfig, loadConfig } from './core/config/index.ts'
export { type ErrorCode, GatewayError } from './core/errors/index.ts'
export { StoreAway, StoreGuard, type StoreGuardOptions } from './core/store-guard/index.ts'
export { type AccountRoutesOptions, accountRoutes } from './endpoints/account/index.ts'
export { callLogRoutes } from './endpoints/calls/index.ts'
export { type ModelRoutesOptions, modelRoutes } from './endpoints/models/index.ts'
export { ticketRoutes } from './endpoints/tickets/index.ts'
export { type UsageRoutesOptions, usageRoutes } from './endpoints/usage/index.ts'
export { type VideoEndpointsOptions, videoEndpoints } from './endpoints/video/index.ts'
export { LeasePool, type LeasePoolOptions, type Ledger, MemoryLedger } from './ledger/index.ts'
export {
  type AuthenticateOptions,
  authenticate,
  type KeyDirectory,
  memoryKeyDirectory,
} from './middleware/authenticate/index.ts'
export { type BeginCallOptions, beginCall } from './middleware/begin-call/index.ts'
export { type BillingGuardOptions, billingGuard } from './middleware/billing-guard/index.ts'
export { type CacheOptions, cache } from './middleware/cache/index.ts'
export { CallLogWriter, callLog, MemoryCallStore } from './middleware/call-log/index.ts'
export { type ErrorEnvelopeOptions, errorEnvelope, unknownPath } from './middleware/error-envelope/index.ts'
export { type ForwardOptions, forward } from './middleware/forward/index.ts'
export { type GuardOptions, guard } from './middleware/guard/index.ts'
export { type IdempotencyOptions, idempotency } from './middleware/idempotency/index.ts'
export {
  ipSubject,
  type LimitLevel,
  type LimitStore,
  type RateLimitOptions,
  rateLimit,
} from './middleware/rate-limit/index.ts'
export { type ReadRequestOptions, readRequest } from './middleware/read-request/index.ts'
export { type ReferencesOptions, references } from './middleware/references/index.ts'
export { LineRegistry, type RouteOptions, route, type Strategy } from './middleware/route/index.ts'
export { type TelemetryOptions, telemetry } from './middleware/telemetry/index.ts'

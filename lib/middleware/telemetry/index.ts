export type { CircuitReading, GatewayStates, PoolFigures, StoreReading } from './gateway-states.ts'
export { StoreWatch } from './store-watch.ts'
export { type TelemetryOptions, telemetry } from './telemetry.ts'
export { type ChargedTask, type ChargingStore, VideoCharges } from './video-charges.ts'

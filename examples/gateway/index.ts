export type { GatewayConfig } from 'express-model-gateway/config'
export { createGateway, type Gateway, type GatewayOptions } from './gateway.ts'
export type { OwnStores, Uses } from './openings.ts'

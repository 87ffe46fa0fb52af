export { isAddressOrBlock } from './address.ts'
export {
  type Catalog,
  type CircuitSettings,
  createCatalog,
  type Feature,
  FREE,
  type Line,
  type Model,
  type ModelKind,
  type Price,
  priceOn,
  type Timeouts,
  windowNeeded,
  windowOn,
} from './catalog.ts'
export { ENDPOINTS_BY_PROTOCOL, hasEndpoint, type LineEndpoints } from './endpoints.ts'
export { compileAllowList, hashSecret } from './keys.ts'
export { formatAmount, isAmount, NANOS_PER_UNIT, parseAmount } from './money.ts'

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
} from './catalog.ts'
export { windowNeeded, windowOn } from './context-window.ts'
export { ENDPOINTS_BY_PROTOCOL, hasEndpoint, type LineEndpoints } from './endpoints.ts'
export { formatAmount, isAmount, NANOS_PER_UNIT, parseAmount } from './money.ts'
export { hashSecret } from './secret-hash.ts'
export { compileAllowList } from './wildcard.ts'

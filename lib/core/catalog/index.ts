export { isAddressOrBlock } from './address.ts'
export {
  type Catalog,
  type CircuitSettings,
  createCatalog,
  type Feature,
  type Line,
  type Model,
  type ModelKind,
  priceOn,
  type Timeouts,
  type UnsupportedPolicy,
  windowNeeded,
  windowOn,
} from './catalog.ts'
export { ENDPOINTS_BY_PROTOCOL, hasEndpoint, type LineEndpoints } from './endpoints.ts'
export { compileAllowList, hashSecret } from './keys.ts'
export { formatAmount, isAmount, NANOS_PER_UNIT, parseAmount } from './money.ts'
export { FREE, type Price, type PriceTier, priceAt, pricedBy, type UnitPrices } from './price.ts'
export {
  isTagName,
  isTagValue,
  MAX_TAG_BYTES,
  MAX_TAGS,
  metricLabelsFault,
  NO_TAGS,
  type Tags,
  tagsOf,
} from './tags.ts'
export type * from './upstream.ts'

export { isAddressOrBlock } from './address.ts'
export {
  type Catalog,
  type CircuitSettings,
  createCatalog,
  DEFAULT_MAX_TOKENS,
  type Feature,
  type Line,
  type Model,
  type ModelCache,
  type ModelKind,
  priceOn,
  type Timeouts,
  type UnsupportedPolicy,
  windowOn,
} from './catalog.ts'
export { ENDPOINTS_BY_PROTOCOL, hasEndpoint, type LineEndpoints } from './endpoints.ts'
export { compileAllowList, hashSecret } from './keys.ts'
export { callersNames, isPattern, mapsPatterns, overlaps, upstreamName } from './model-patterns.ts'
export {
  FREE,
  formatAmount,
  isAmount,
  NANOS_PER_UNIT,
  type Price,
  type PriceTier,
  parseAmount,
  priceAt,
  pricedBy,
  type UnitPrices,
} from './money.ts'
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

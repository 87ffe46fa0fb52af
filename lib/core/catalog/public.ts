/* The names that the subpath of the package exports. The other rooms import "./index.ts". */
export {
  type Catalog,
  type CircuitSettings,
  createCatalog,
  type Feature,
  formatAmount,
  isAddressOrBlock,
  isAmount,
  type Line,
  type LineEndpoints,
  type Model,
  type ModelKind,
  type Price,
  type PriceTier,
  parseAmount,
  type Tags,
  type Timeouts,
  type UnitPrices,
  type UnsupportedPolicy,
} from './index.ts'
export type * from './upstream.ts'

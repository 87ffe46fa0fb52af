export { type ChangeOrigin, changeOrigin, type RecordedChange } from '../../core/change-log/index.ts'
export type {
  Account,
  AccountSettings,
  AccountStore,
  DepositOutcome,
} from './accounts/account-store.ts'
export {
  MemoryAccountStore,
  type MemoryAccountStoreOptions,
} from './accounts/memory-account-store.ts'
export { type AdminAccess, type AdminAccessOptions, adminAccess } from './admin-access.ts'
export { type AdminRoutesOptions, adminRoutes } from './admin-routes.ts'
export {
  ConfigAuthority,
  type ConfigAuthorityOptions,
  type Difference,
  type RulingConfig,
  type Seeds,
} from './authority/config-authority.ts'
export type { ConfigAccount as AccountSeed } from './authority/config-settings.ts'
export type { BudgetCreation, BudgetQuery, BudgetStore } from './budgets/budget-store.ts'
export { MemoryBudgetStore, type MemoryBudgetStoreOptions } from './budgets/memory-budget-store.ts'
export type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './keys/key-store.ts'
export { KeyUses, type KeyUsesOptions } from './keys/key-uses.ts'
export { MemoryKeyStore, type MemoryKeyStoreOptions } from './keys/memory-key-store.ts'
export type { LeaseFigures, LedgerView, WalletFigures } from './ledger/ledger-view.ts'
export type { AdminLines } from './lines/line-routes.ts'
export type { LineSwitchStore } from './lines/line-switch-store.ts'
export { MemoryLineSwitchStore } from './lines/memory-line-switch-store.ts'
export { MemoryOperatorStore } from './operators/memory-operator-store.ts'
export type {
  NewOperator,
  OperatorSettings,
  OperatorStore,
  StoredOperator,
} from './operators/operator-store.ts'
export type { RegionsView } from './regions/region-routes.ts'
export { MemorySessionStore } from './sessions/memory-session-store.ts'
export { setSessionCookie } from './sessions/session-cookie.ts'
export type { NewSession, OperatorSession, SessionStore } from './sessions/session-store.ts'
export { configWarnings } from './unknown-names.ts'
export type { VideoTaskFigures, VideoTaskResolution, VideoTasksView } from './videos/video-tasks-view.ts'
export type { AdminWebhooks } from './webhooks/webhook-routes.ts'

export type { ChangeOrigin, RecordedChange } from '../change-log/index.ts'
export type {
  Account,
  AccountSettings,
  AccountStore,
  DepositOutcome,
} from './account-store.ts'
export { type AdminAccessOptions, adminAccess } from './admin-access.ts'
export { type AdminRoutesOptions, adminRoutes } from './admin-routes.ts'
export type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './key-store.ts'
export type { LeaseFigures, LedgerFigures, LedgerView, WalletFigures } from './ledger-view.ts'
export type { AdminLines } from './line-routes.ts'
export type { LineSwitchStore } from './line-switch-store.ts'
export {
  type AccountSeed,
  MemoryAccountStore,
  type MemoryAccountStoreOptions,
} from './memory-account-store.ts'
export { MemoryKeyStore, type MemoryKeyStoreOptions } from './memory-key-store.ts'
export { MemoryLineSwitchStore } from './memory-line-switch-store.ts'
export type { VideoTaskFigures, VideoTaskResolution, VideoTasksView } from './video-tasks-view.ts'

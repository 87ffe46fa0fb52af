export { type ChangeOrigin, changeOrigin, type RecordedChange } from '../../core/change-log/index.ts'
export type {
  Account,
  AccountSettings,
  AccountStore,
  DepositOutcome,
} from './accounts/account-store.ts'
export {
  type AccountSeed,
  MemoryAccountStore,
  type MemoryAccountStoreOptions,
} from './accounts/memory-account-store.ts'
export { type AdminAccess, type AdminAccessOptions, adminAccess } from './admin-access.ts'
export { type AdminRoutesOptions, adminRoutes } from './admin-routes.ts'
export type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './keys/key-store.ts'
export { MemoryKeyStore, type MemoryKeyStoreOptions } from './keys/memory-key-store.ts'
export type { LeaseFigures, LedgerFigures, LedgerView, WalletFigures } from './ledger/ledger-view.ts'
export type { AdminLines } from './lines/line-routes.ts'
export type { LineSwitchStore } from './lines/line-switch-store.ts'
export { MemoryLineSwitchStore } from './lines/memory-line-switch-store.ts'
export type { VideoTaskFigures, VideoTaskResolution, VideoTasksView } from './videos/video-tasks-view.ts'

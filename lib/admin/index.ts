export type {
  Account,
  AccountSettings,
  AccountStore,
  ChangeOrigin,
  DepositOutcome,
  RecordedChange,
} from './account-store.ts'
export { type AdminAccessOptions, adminAccess } from './admin-access.ts'
export { type AdminRoutesOptions, adminRoutes } from './admin-routes.ts'
export type { LeaseFigures, LedgerFigures, LedgerView, WalletFigures } from './ledger-view.ts'
export {
  type AccountSeed,
  MemoryAccountStore,
  type MemoryAccountStoreOptions,
} from './memory-account-store.ts'
export type { VideoTaskFigures, VideoTasksView } from './video-tasks-view.ts'

export { ROLES, type Role } from '../core/call/index.ts'
export type { ChangeLog, ChangeOrigin, RecordedChange } from '../core/change-log/index.ts'
export type { Account, AccountSettings, AccountStore, DepositOutcome } from './accounts/account-store.ts'
export type { AccountAnswer } from './accounts/accounts.ts'
export type {
  LeaseAnswer,
  LeaseFigures,
  LedgerCheckAnswer,
  LedgerView,
  WalletFigures,
} from './accounts/ledger.ts'
export { type AdminRoutesOptions, adminRoutes } from './admin-routes.ts'
export type { ConfigAccount as AccountSeed } from './authority/config-authority.ts'
export {
  ConfigAuthority,
  type ConfigAuthorityOptions,
  type Difference,
  type DriftPage,
  type RulingConfig,
  type Seeds,
} from './authority/config-authority.ts'
export type { DifferenceAnswer } from './authority/drift.ts'
export type { BudgetCreation, BudgetQuery, BudgetStore } from './budgets/budget-store.ts'
export type { BudgetAnswer } from './budgets/budgets.ts'
export type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from './keys/key-store.ts'
export { KeyUses, type KeyUsesOptions } from './keys/key-uses.ts'
export type { KeyAnswer } from './keys/keys.ts'
export type { LineSwitchStore } from './lines/line-switch-store.ts'
export type { AdminLines, LineAnswer } from './lines/lines.ts'
export { type AdminAccess, type AdminAccessOptions, adminAccess } from './operators/admin-access.ts'
export type { ChangeAnswer } from './operators/changes.ts'
export type {
  NewOperator,
  OperatorSettings,
  OperatorStore,
  StoredOperator,
} from './operators/operator-store.ts'
export type { OperatorAnswer } from './operators/operators.ts'
export { setSessionCookie } from './operators/session-cookie.ts'
export type { NewSession, OperatorSession, SessionStore } from './operators/session-store.ts'
export type { OwnSessionAnswer, SessionAnswer } from './operators/sessions.ts'
export type { TicketWithCallAnswer } from './tickets/admin-tickets.ts'
export { type AdminTicketRoutesOptions, adminTicketRoutes } from './tickets/admin-tickets.ts'
export type { VideoTaskAnswer, VideoTaskFigures, VideoTaskResolution, VideoTasksView } from './video-tasks.ts'
export type { AdminWebhooks, DeliveryAnswer, WebhookAnswer } from './webhooks/webhooks.ts'

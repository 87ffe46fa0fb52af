export type { Budget, BudgetPeriod, BudgetScope, BudgetTerms } from './budgets/budget.ts'
export { type BudgetChanges, Budgets, type BudgetsOptions } from './budgets/budgets.ts'
export type {
  DepositResult,
  Draw,
  LeaseAnswer,
  LeaseChange,
  Ledger,
  LedgerAdmin,
  LedgerCheck,
  OpenLease,
  RestoredLedger,
  Settlement,
  SettlementResult,
  WalletState,
  WalletStatement,
} from './ledger.ts'
export { MemoryLedger, type MemoryLedgerOptions } from './memory/memory-ledger.ts'
export {
  LeasePool,
  type LeasePoolOptions,
  type ReserveClaim,
  type ReserveRefusal,
} from './pool/lease-pool.ts'
export type { Bill, ChargeOutcome, Reservation, SettleOutcome } from './pool/reservation.ts'
export { accountWallet, keyWallet, type WalletId } from './wallet.ts'
export { WalletsLocked } from './wallets-locked.ts'

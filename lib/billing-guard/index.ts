export { type BillingGuardOptions, billingGuard } from './billing-guard.ts'
export {
  LeasePool,
  type LeasePoolOptions,
  type ReserveClaim,
  type ReserveRefusal,
} from './lease-pool.ts'
export type {
  DepositResult,
  Draw,
  LeaseAnswer,
  LeaseChange,
  Ledger,
  LedgerBooks,
  LedgerCheck,
  OpenLease,
  Settlement,
  SettlementResult,
  WalletState,
  WalletStatement,
} from './ledger.ts'
export { MemoryLedger, type MemoryLedgerOptions } from './memory-ledger.ts'
export type { Bill, ChargeOutcome, Reservation, SettleOutcome } from './reservation.ts'
export { accountWallet, keyWallet, type WalletId } from './wallet.ts'

import type { Clock } from '../pool/clock.ts'
import type { LeaseFigures } from './held-lease.ts'

/** What a wallet needs of its pool. */
export interface WalletSurroundings<Wallet> {
  readonly clock: Clock
  readonly figures: LeaseFigures
  /** Sees to it that the wallet is asked what the ledger is to be asked for. */
  ask(wallet: Wallet): void
  newLeaseId(): string
  /** Whether all is to be given back. */
  isClosing(): boolean
}

/** The calls that wait for money of a wallet. */
export interface Waiting<Wallet> {
  /** Their amounts, in the order in which they are served. */
  amountsFor(wallet: Wallet): readonly bigint[]
  /** Something came back that may serve them. */
  serveSoon(): void
  /** Admits and refuses, now that the ledger has told of those wallets. */
  serve(told: readonly Wallet[]): void
}

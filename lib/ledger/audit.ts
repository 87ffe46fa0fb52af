import { formatAmount } from '../core/catalog/index.ts'
import type { LeaseRecord, WalletFigures } from './lease.ts'
import type { LedgerCheck } from './ledger.ts'
import type { WalletId } from './wallet.ts'

/** What the entries of a wallet add up to. */
interface WalletSums {
  deposited: bigint
  charged: bigint
  voided: bigint
  held: bigint
}

/**
 * Recomputes wallets from their entries and compares: entries are added first, in any order, then each wallet is
 * compared, then {@link Audit.result} tells what does not hold.
 */
export class Audit {
  readonly #sums = new Map<WalletId, WalletSums>()
  readonly #violations: string[] = []
  #accounts = 0
  #charges = 0
  #deposited = 0n
  #spent = 0n
  #leased = 0n

  deposits(wallet: WalletId, amount: bigint): void {
    this.#of(wallet).deposited += amount
  }

  charges(wallet: WalletId, amount: bigint): void {
    this.#of(wallet).charged += amount
  }

  countCharges(count: number): void {
    this.#charges += count
  }

  voids(wallet: WalletId, amount: bigint): void {
    this.#of(wallet).voided += amount
  }

  /** What leases and holds of a wallet come to. */
  holds(wallet: WalletId, amount: bigint): void {
    this.#of(wallet).held += amount
  }

  /** A void that undoes something else than its charge; `charged` is null where there is none. */
  unmatchedVoid(requestId: string, amount: bigint, charged: bigint | null): void {
    const charge = charged === null ? 'there is no charge' : `its charge is ${formatAmount(charged)}`
    this.#violations.push(`void of "${requestId}" undoes ${formatAmount(amount)}, and ${charge}`)
  }

  /** A lease that holds less than nothing, or something although it has ended. */
  wrongLease({ id, wallet, held, ended }: Pick<LeaseRecord, 'id' | 'wallet' | 'held' | 'ended'>): void {
    const state = ended === null ? '' : ', which has ended,'
    this.#violations.push(`lease "${id}"${state} holds ${formatAmount(held)} of wallet "${wallet}"`)
  }

  /** A hold of nothing, or one whose request is charged already. */
  wrongHold({ id, amount, charged }: { id: string; amount: bigint; charged: boolean }): void {
    const state = charged ? ', which is charged,' : ''
    this.#violations.push(`hold "${id}"${state} is of ${formatAmount(amount)}`)
  }

  wallet(id: WalletId, { funds, spent, leased }: WalletFigures): void {
    const { deposited, charged, voided, held } = this.#sums.get(id) ?? NOTHING
    this.#sums.delete(id)
    this.#compare(id, 'spent', spent, 'its charges less voids come to', charged - voided)
    this.#compare(id, 'leased', leased, 'its leases and holds come to', held)
    if (!id.startsWith('account:')) return
    this.#compare(id, 'funds', funds, 'its deposits come to', deposited)
    this.#accounts += 1
    this.#deposited += deposited
    this.#spent += charged - voided
    this.#leased += held
  }

  result(): LedgerCheck {
    for (const id of this.#sums.keys())
      this.#violations.push(`wallet "${id}" has entries, and is not there itself`)
    return {
      violations: this.#violations,
      accounts: this.#accounts,
      charges: this.#charges,
      deposited: this.#deposited,
      spent: this.#spent,
      leased: this.#leased,
    }
  }

  #compare(id: WalletId, figure: string, kept: bigint, entries: string, found: bigint): void {
    if (kept === found) return
    this.#violations.push(
      `wallet "${id}": ${figure} is ${formatAmount(kept)}, ${entries} ${formatAmount(found)}`,
    )
  }

  #of(wallet: WalletId): WalletSums {
    let sums = this.#sums.get(wallet)
    if (!sums) {
      sums = { ...NOTHING }
      this.#sums.set(wallet, sums)
    }
    return sums
  }
}

const NOTHING: Readonly<WalletSums> = { deposited: 0n, charged: 0n, voided: 0n, held: 0n }

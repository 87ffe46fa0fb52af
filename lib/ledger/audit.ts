import { formatAmount } from '../core/catalog/index.ts'
import type { Hold } from './hold.ts'
import type { LeaseRecord, WalletFigures } from './lease.ts'
import type { LedgerCheck } from './ledger.ts'
import { accountWallet, keyWallet, type WalletId } from './wallet.ts'

/** The sum of the charges of one account and key. */
export interface AuditedCharges extends Charged {
  readonly count: number
}

/** A void, and the charge under its request id. */
export interface AuditedVoid extends Charged {
  readonly requestId: string
  readonly charge: Charged | null
}

/** The payer and the amount. */
interface Charged {
  readonly account: string
  readonly key: string | null
  readonly amount: bigint
}

/** A hold, and whether its request is charged. */
export interface AuditedHold extends Hold {
  readonly charged: boolean
}

export interface AuditedDeposit {
  readonly account: string
  readonly amount: bigint
}

export type AuditedLease = Pick<LeaseRecord, 'id' | 'wallet' | 'held' | 'ended'>

export interface AuditedWallet extends Pick<WalletFigures, 'funds' | 'spent' | 'leased'> {
  readonly id: WalletId
}

/** Entries in pages, so that not all of them are in memory at once. */
export type Pages<Entry> = Iterable<readonly Entry[]> | AsyncIterable<readonly Entry[]>

/** All entries of a ledger, as of one moment. */
export interface LedgerEntries {
  readonly deposits: Pages<AuditedDeposit>
  readonly charges: Pages<AuditedCharges>
  readonly voids: Pages<AuditedVoid>
  readonly leases: Pages<AuditedLease>
  readonly holds: Pages<AuditedHold>
  readonly wallets: Pages<AuditedWallet>
}

/** The sums of the entries of a wallet. */
interface WalletSums {
  deposited: bigint
  charged: bigint
  voided: bigint
  held: bigint
}

/** Recomputes a ledger from its entries, and returns a description of each violated rule. */
export async function auditLedger(entries: LedgerEntries): Promise<LedgerCheck> {
  const audit = new Audit()
  for await (const page of entries.deposits) for (const deposit of page) audit.deposit(deposit)
  for await (const page of entries.charges) for (const charge of page) audit.charge(charge)
  for await (const page of entries.voids) for (const undone of page) audit.void(undone)
  for await (const page of entries.leases) for (const lease of page) audit.lease(lease)
  for await (const page of entries.holds) for (const hold of page) audit.hold(hold)
  for await (const page of entries.wallets) for (const wallet of page) audit.wallet(wallet)
  return audit.result()
}

/** Adds up entries and compares the wallets with the sums. Wallets come last. */
class Audit {
  readonly #sums = new Map<WalletId, WalletSums>()
  readonly #violations: string[] = []
  #accounts = 0
  #charges = 0
  #deposited = 0n
  #spent = 0n
  #leased = 0n

  deposit({ account, amount }: AuditedDeposit): void {
    this.#of(accountWallet(account)).deposited += amount
  }

  charge({ account, key, amount, count }: AuditedCharges): void {
    this.#charges += count
    this.#of(accountWallet(account)).charged += amount
    if (key !== null) this.#of(keyWallet(key)).charged += amount
  }

  /** A void that came before its charge has the amount 0, and its wallet may be missing. */
  void({ requestId, account, key, amount, charge }: AuditedVoid): void {
    if (amount !== 0n) {
      this.#of(accountWallet(account)).voided += amount
      if (key !== null) this.#of(keyWallet(key)).voided += amount
    }
    const isWhole = charge && account === charge.account && key === charge.key && amount === charge.amount
    if (charge ? isWhole : amount === 0n) return
    const found = charge ? `its charge is ${formatAmount(charge.amount)}` : 'there is no charge'
    this.#violations.push(`void of "${requestId}" undoes ${formatAmount(amount)}, and ${found}`)
  }

  lease({ id, wallet, held, ended }: AuditedLease): void {
    this.#of(wallet).held += held
    if (held >= 0n && (ended === null || held === 0n)) return
    const state = ended === null ? '' : ', which has ended,'
    this.#violations.push(`lease "${id}"${state} holds ${formatAmount(held)} of wallet "${wallet}"`)
  }

  hold({ id, account, key, amount, charged }: AuditedHold): void {
    this.#of(accountWallet(account)).held += amount
    if (key !== null) this.#of(keyWallet(key)).held += amount
    if (amount > 0n && !charged) return
    const state = charged ? ', which is charged,' : ''
    this.#violations.push(`hold "${id}"${state} is of ${formatAmount(amount)}`)
  }

  wallet({ id, funds, spent, leased }: AuditedWallet): void {
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

import { formatAmount } from '../core/catalog/index.ts'
import { budgetOfWallet, isLongPast } from './budgets/budget.ts'
import type { Hold } from './hold.ts'
import type { LeaseRecord, WalletFigures } from './lease.ts'
import type { LedgerCheck } from './ledger.ts'
import { accountWallet, type Spender, type WalletId, walletsOf } from './wallet.ts'

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
interface Charged extends Spender {
  readonly amount: bigint
}

/** A hold, and whether its request is charged. */
export interface AuditedHold extends Omit<Hold, 'budgets'> {
  readonly charged: boolean
}

/** The sum of the charges less voids of a wallet that are no longer kept, and how many charges those were. */
export interface AuditedCarried {
  readonly wallet: WalletId
  readonly amount: bigint
  readonly charges: bigint
}

export interface AuditedDeposit {
  readonly account: string
  readonly amount: bigint
}

/** A lease, or the part of a hold on a budget. */
export type AuditedLease = Pick<LeaseRecord, 'id' | 'wallet' | 'held' | 'ended'>

export interface AuditedWallet extends Pick<WalletFigures, 'funds' | 'spent' | 'leased'> {
  readonly id: WalletId
}

/** The charges of the usage of some calls of an account and key. */
export interface AuditedUsage {
  readonly account: string
  readonly key: string | null
  readonly charged: bigint
  /** Other sums of the same calls, by what they are called. Defaults to none. */
  readonly other?: readonly { readonly name: string; readonly charged: bigint; readonly expected: bigint }[]
}

/** Entries in pages, so that not all of them are in memory at once. */
export type Pages<Entry> = Iterable<readonly Entry[]> | AsyncIterable<readonly Entry[]>

/** All entries of a ledger, as of one moment. */
export interface LedgerEntries {
  readonly deposits: Pages<AuditedDeposit>
  /** The sums of charges and voids that are no longer kept. Defaults to none. */
  readonly carried?: Pages<AuditedCarried>
  readonly charges: Pages<AuditedCharges>
  readonly voids: Pages<AuditedVoid>
  readonly leases: Pages<AuditedLease>
  readonly holds: Pages<AuditedHold>
  readonly wallets: Pages<AuditedWallet>
  /** The charges of the usage of all calls. Defaults to no check. */
  readonly usage?: Pages<AuditedUsage>
}

interface WalletSums {
  deposited: bigint
  charged: bigint
  voided: bigint
  held: bigint
  used: bigint
}

/** Recomputes a ledger from its entries, and returns a description of each violated rule. */
export async function auditLedger(entries: LedgerEntries): Promise<LedgerCheck> {
  const audit = new Audit()
  for await (const page of entries.deposits) for (const deposit of page) audit.deposit(deposit)
  for await (const page of entries.carried ?? []) for (const carried of page) audit.carry(carried)
  for await (const page of entries.charges) for (const charge of page) audit.charge(charge)
  for await (const page of entries.voids) for (const undone of page) audit.void(undone)
  for await (const page of entries.leases) for (const lease of page) audit.lease(lease)
  for await (const page of entries.holds) for (const hold of page) audit.hold(hold)
  if (entries.usage) {
    audit.countsUsage = true
    for await (const page of entries.usage) for (const usage of page) audit.usage(usage)
  }
  for await (const page of entries.wallets) for (const wallet of page) audit.wallet(wallet)
  return audit.result()
}

/** By how much the clock of a process that deletes wallets of past periods may be ahead. */
const CLOCKS_MS = 86_400_000

/** Adds up entries and compares the wallets with the sums. Wallets come last. */
class Audit {
  readonly #sums = new Map<WalletId, WalletSums>()
  readonly #violations: string[] = []
  countsUsage = false
  #accounts = 0
  #charges = 0
  #deposited = 0n
  #spent = 0n
  #leased = 0n

  deposit({ account, amount }: AuditedDeposit): void {
    this.#of(accountWallet(account)).deposited += amount
  }

  carry({ wallet, amount, charges }: AuditedCarried): void {
    this.#charges += Number(charges)
    this.#of(wallet).charged += amount
  }

  charge({ account, key, amount, count, budgets }: AuditedCharges): void {
    this.#charges += count
    this.#add('charged', { account, key, budgets }, amount)
  }

  /** A void that came before its charge has the amount 0, and its wallet may be missing. */
  void({ requestId, account, key, amount, charge }: AuditedVoid): void {
    if (amount !== 0n) this.#add('voided', { account, key, budgets: charge?.budgets }, amount)
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
    this.#add('held', { account, key }, amount)
    if (amount > 0n && !charged) return
    const state = charged ? ', which is charged,' : ''
    this.#violations.push(`hold "${id}"${state} is of ${formatAmount(amount)}`)
  }

  usage({ account, key, charged, other = [] }: AuditedUsage): void {
    // Calls that were refused may be of an account or a key without a wallet.
    if (charged !== 0n) this.#add('used', { account, key }, charged)
    for (const { name, charged: found, expected } of other) {
      if (found === expected) continue
      const payer = key === null ? `account "${account}"` : `account "${account}" and key "${key}"`
      this.#violations.push(
        `usage of ${payer} comes to ${formatAmount(expected)}, ${name} to ${formatAmount(found)}`,
      )
    }
  }

  wallet({ id, funds, spent, leased }: AuditedWallet): void {
    const { deposited, charged, voided, held, used } = this.#sums.get(id) ?? NOTHING
    this.#sums.delete(id)
    this.#compare(id, 'spent', spent, 'its charges less voids come to', charged - voided)
    this.#compare(id, 'leased', leased, 'its leases and holds come to', held)
    if (this.countsUsage && !id.startsWith('budget:'))
      this.#compare(id, 'spent', spent, 'its usage comes to', used)
    if (!id.startsWith('account:')) return
    this.#compare(id, 'funds', funds, 'its deposits and adjustments come to', deposited)
    this.#accounts += 1
    this.#deposited += deposited
    this.#spent += charged - voided
    this.#leased += held
  }

  result(): LedgerCheck {
    const at = Date.now() + CLOCKS_MS
    for (const [id, { held }] of this.#sums) {
      if (held === 0n && budgetOfWallet(id) !== undefined && isLongPast(id, at)) continue
      this.#violations.push(`wallet "${id}" has entries but no row`)
    }
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

  #add(figure: keyof WalletSums, to: Spender, amount: bigint): void {
    for (const id of walletsOf(to)) this.#of(id)[figure] += amount
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

const NOTHING: Readonly<WalletSums> = {
  deposited: 0n,
  charged: 0n,
  voided: 0n,
  held: 0n,
  used: 0n,
}

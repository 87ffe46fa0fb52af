import type { CallLogEntry, IdempotencyClaim } from '../core/call/index.ts'
import { assertAmount, MAX_AMOUNT } from '../core/catalog/money.ts'
import { shareOfEntry, type UsageShare } from '../core/usage/index.ts'
import type { LeaseRecord, WalletFigures } from './lease.ts'
import type { ChargeRecord, SettledClaim, Settlement, SettlementResult } from './ledger.ts'
import { accountWallet, type Spender, type WalletId, walletsOf } from './wallet.ts'

/*
 * The writes and the results of settlements, for every ledger. A charge is written once for its request id, and not at all if its
 * claim was lost or a void came first. Only a charge that is written moves money.
 */

/** The sums of a wallet that settlements change. */
export type SpentFigures = Readonly<Pick<WalletFigures, 'spent' | 'leased' | 'overrun'>>

/** The state of a request id: a charge, undone or not, or a void that came before any charge. */
export interface StandingCharge {
  /** The charged account; null if there is only a void. */
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint
  readonly voided: boolean
  /** The wallets of its budgets. Absent: none. */
  readonly budgets?: readonly WalletId[] | undefined
  /** The usage that it has added, which a void takes away; null for none. */
  readonly usage: UsageShare | null
}

/** Rows by their ids. */
export interface Rows<Id, Row> {
  get(id: Id): Row | undefined
}

/** The rows that settlements depend on. */
export interface SettlementRows {
  readonly wallets: Rows<WalletId, SpentFigures>
  readonly leases: Rows<string, Readonly<Pick<LeaseRecord, 'wallet' | 'held'>>>
  /** By request id. */
  readonly charges: Rows<string, StandingCharge>
  /** The amounts held for video tasks, by the request id of the later charge. */
  readonly holds: Rows<string, bigint>
  /** Returns whether a record of an Idempotency-Key still belongs to its owner. */
  owns(claim: IdempotencyClaim): boolean
}

/** Ends the hold of a request id without a charge. */
export interface HoldRelease extends Spender {
  readonly kind: 'release'
  readonly requestId: string
}

/** The amounts to add to the sums of a wallet. All may be 0: the settlement relies on the wallet, which has to be locked. */
export interface WalletChange extends SpentFigures {
  readonly id: WalletId
}

/** A void to be written. */
export interface PlannedVoid {
  readonly requestId: string
  readonly account: string
  readonly key: string | null
  /** The amount of its charge; 0n if it has none. */
  readonly amount: bigint
  readonly at: number
  /** Whether it comes before its charge, which must not have been written meanwhile. */
  readonly isFirst: boolean
}

/** A log entry to be written. It replaces an earlier one. */
export interface PlannedEntry {
  readonly entry: CallLogEntry
  /** Whether a void that was written meanwhile has the final entry: the charge was stored before. */
  readonly unlessVoided: boolean
}

/** The writes and the results of settlements. */
export interface SettlementPlan {
  /** In the order of the settlements; `written` for a release. */
  readonly results: readonly SettlementResult[]
  /** Missing wallets, to be opened without a limit. */
  readonly openedWallets: readonly WalletId[]
  readonly wallets: readonly WalletChange[]
  /** The amounts to take out of leases. */
  readonly draws: readonly { readonly lease: string; readonly wallet: WalletId; readonly amount: bigint }[]
  readonly charges: readonly ChargeRecord[]
  readonly voids: readonly PlannedVoid[]
  readonly completedClaims: readonly SettledClaim[]
  readonly freedClaims: readonly IdempotencyClaim[]
  readonly entries: readonly PlannedEntry[]
  /** The request ids whose holds end. */
  readonly closedHolds: readonly string[]
  /** The wallets of budgets that written charges count against, and when. */
  readonly chargedBudgets: ReadonlyMap<WalletId, number>
  readonly usage: {
    /** The part of `charges` whose usage is added: the others are undone at once. */
    readonly charged: readonly ChargeRecord[]
    /** The usage of undone charges, which is taken away. */
    readonly undone: readonly UsageShare[]
    /** Calls that are counted without a charge, because that was undone. */
    readonly uncharged: readonly UsageShare[]
  }
}

/** @throws RangeError if an amount of the settlement is not valid. */
export function assertSettlement({ requestId, amount, draws }: Settlement): void {
  assertAmount(amount, requestId)
  for (const draw of draws) assertAmount(draw.amount, requestId)
}

/**
 * Returns the writes and the results of settlements, made one after the other on the given rows. It changes nothing. The
 * writes must be made all or none, and only if the rows are still the same.
 */
export function plan(
  settlements: readonly (Settlement | HoldRelease)[],
  rows: SettlementRows,
): SettlementPlan {
  const draft = new Draft(rows)
  const results = settlements.map((settlement) => draft.settle(settlement))
  return draft.finish(results)
}

const NOTHING_SPENT: SpentFigures = { spent: 0n, leased: 0n, overrun: 0n }

/**
 * Returns the rows as almost all settlements find them: the charges are new, the claims belong to their owners, the wallets
 * exist, and the leases hold enough. A plan of these rows only adds to sums. A database can write it without reading
 * first, if it makes sure that all this is so.
 */
export function usualRows(settlements: readonly Settlement[]): SettlementRows {
  const leases = new Map<string, Pick<LeaseRecord, 'wallet' | 'held'>>()
  for (const { draws } of settlements)
    for (const { lease, wallet } of draws)
      if (!leases.has(lease)) leases.set(lease, { wallet, held: MAX_AMOUNT })
  return {
    wallets: { get: () => NOTHING_SPENT },
    leases,
    charges: new Map(),
    holds: new Map(),
    owns: () => true,
  }
}

interface ChangedWallet {
  readonly found: SpentFigures
  readonly now: { spent: bigint; leased: bigint; overrun: bigint }
}

interface ChangedLease {
  readonly wallet: WalletId
  readonly found: bigint
  held: bigint
}

/** The rows as the settlements so far leave them. */
class Draft {
  readonly #rows: SettlementRows
  readonly #opened: WalletId[] = []
  readonly #wallets = new Map<WalletId, ChangedWallet>()
  readonly #leases = new Map<string, ChangedLease>()
  readonly #standing = new Map<string, StandingCharge>()
  readonly #charges = new Map<string, ChargeRecord>()
  readonly #voids: PlannedVoid[] = []
  /** By {@link claimName}. */
  readonly #completed = new Map<string, SettledClaim>()
  readonly #freed = new Map<string, IdempotencyClaim>()
  readonly #entries = new Map<string, PlannedEntry>()
  readonly #closedHolds = new Set<string>()
  readonly #budgets = new Map<WalletId, number>()
  readonly #undone: UsageShare[] = []
  readonly #uncharged: UsageShare[] = []

  constructor(rows: SettlementRows) {
    this.#rows = rows
  }

  settle(settlement: Settlement | HoldRelease): SettlementResult {
    switch (settlement.kind) {
      case 'charge':
        return this.#charge(settlement)
      case 'void':
        return this.#void(settlement)
      case 'revoked': {
        const result = this.#charge(settlement)
        this.#void(settlement)
        return result
      }
      case 'release':
        this.#closeHold(settlement)
        return 'written'
    }
  }

  finish(results: readonly SettlementResult[]): SettlementPlan {
    const isUndone = ({ requestId }: ChargeRecord) => this.#standing.get(requestId)?.voided === true
    const charges = [...this.#charges.values()]
    return {
      results,
      openedWallets: this.#opened,
      wallets: Array.from(this.#wallets, ([id, { found, now }]) => ({
        id,
        spent: now.spent - found.spent,
        leased: now.leased - found.leased,
        overrun: now.overrun - found.overrun,
      })),
      draws: Array.from(this.#leases, ([lease, { wallet, found, held }]) => ({
        lease,
        wallet,
        amount: found - held,
      })).filter(({ amount }) => amount !== 0n),
      charges,
      voids: this.#voids,
      completedClaims: [...this.#completed.values()],
      freedClaims: [...this.#freed.values()],
      entries: [...this.#entries.values()],
      closedHolds: [...this.#closedHolds],
      chargedBudgets: this.#budgets,
      usage: {
        charged: charges.filter((charge) => !isUndone(charge)),
        undone: this.#undone,
        uncharged: this.#uncharged,
      },
    }
  }

  #charge(settlement: Settlement): SettlementResult {
    const { requestId, claim } = settlement
    const isOwned = claim === null || this.#completeClaim(claim)
    const standing = this.#find(requestId)
    if (!isOwned && (standing?.account ?? null) === null) return 'fenced'
    if (!standing) {
      this.#write(settlement)
      return 'written'
    }
    this.#closeHold(settlement)
    const { entry } = settlement
    // A charge that a void has undone stays undone, and the entry of the void stays. A claim that was still there is freed.
    if (standing.voided) {
      if (claim) this.#freeClaim(claim)
    } else if (entry) this.#log(entry)
    return 'known'
  }

  #write(settlement: Settlement): void {
    const { requestId, account, key, amount, budgets = [], draws, at } = settlement
    this.#charges.set(requestId, settlement)
    this.#standing.set(requestId, { account, key, amount, budgets, voided: false, usage: null })
    for (const budget of budgets) this.#budgets.set(budget, at)
    this.#spend(settlement, amount)
    const held = this.#closeHold(settlement)
    if (held !== undefined && amount > held)
      for (const wallet of this.#payersOf(settlement)) wallet.overrun += amount - held
    for (const { lease, wallet, amount: part } of draws) this.#draw(lease, wallet, part)
    const { entry } = settlement
    if (entry) this.#log(entry)
  }

  #void(settlement: Settlement): SettlementResult {
    const { requestId, account, key, at, claim, entry } = settlement
    const standing = this.#find(requestId)
    const isKnown = standing?.voided === true
    if (!isKnown) {
      if (standing && standing.account !== null) {
        this.#undo(requestId, standing as StandingCharge & { account: string }, at)
      } else {
        // Spends nothing, but locks the wallet: a charge that is written at the same time comes before or after it.
        this.#wallet(accountWallet(account))
        this.#voids.push({ requestId, account, key, amount: 0n, at, isFirst: true })
        const nothing = { account: null, key: null, amount: 0n, usage: null }
        this.#standing.set(requestId, { ...nothing, voided: true })
      }
      const uncharged = entry && shareOfEntry(entry)
      if (uncharged) this.#uncharged.push(uncharged)
    }
    if (entry) this.#log(entry)
    if (claim) this.#freeClaim(claim)
    return isKnown ? 'known' : 'written'
  }

  #undo(requestId: string, standing: StandingCharge & { account: string }, at: number): void {
    const { account, key, amount, usage } = standing
    this.#voids.push({ requestId, account, key, amount, at, isFirst: false })
    this.#standing.set(requestId, { ...standing, voided: true, usage: null })
    if (usage) this.#undone.push(usage)
    this.#spend(standing, -amount)
  }

  /** Returns what was held; undefined if there is no hold. */
  #closeHold(hold: Spender & { readonly requestId: string }): bigint | undefined {
    const { requestId } = hold
    const held = this.#closedHolds.has(requestId) ? undefined : this.#rows.holds.get(requestId)
    if (held === undefined || held === 0n) return held
    this.#closedHolds.add(requestId)
    for (const wallet of this.#payersOf(hold)) wallet.leased -= held
    return held
  }

  /** Takes a part of a charge out of its lease. A part that the lease does not hold is an overrun of the wallet. */
  #draw(id: string, wallet: WalletId, amount: bigint): void {
    const figures = this.#wallet(wallet)
    if (!figures) return
    const lease = this.#lease(id)
    let drawn = 0n
    if (lease && lease.wallet === wallet && lease.held > 0n) {
      drawn = amount < lease.held ? amount : lease.held
      lease.held -= drawn
    }
    figures.leased -= drawn
    figures.overrun += amount - drawn
  }

  #spend(spender: Spender, amount: bigint): void {
    for (const wallet of this.#payersOf(spender)) wallet.spent += amount
  }

  /** Returns the wallets that pay. Missing ones are opened. */
  #payersOf(spender: Spender): ChangedWallet['now'][] {
    return walletsOf(spender).map((id) => this.#walletOrNew(id))
  }

  #walletOrNew(id: WalletId): ChangedWallet['now'] {
    const known = this.#wallet(id)
    if (known) return known
    this.#opened.push(id)
    return this.#keepWallet(id, NOTHING_SPENT)
  }

  #wallet(id: WalletId): ChangedWallet['now'] | undefined {
    const changed = this.#wallets.get(id)
    if (changed) return changed.now
    const found = this.#rows.wallets.get(id)
    return found && this.#keepWallet(id, found)
  }

  #keepWallet(id: WalletId, { spent, leased, overrun }: SpentFigures): ChangedWallet['now'] {
    const now = { spent, leased, overrun }
    this.#wallets.set(id, { found: { ...now }, now })
    return now
  }

  #lease(id: string): ChangedLease | undefined {
    const changed = this.#leases.get(id)
    if (changed) return changed
    const found = this.#rows.leases.get(id)
    if (!found) return undefined
    const lease = { wallet: found.wallet, found: found.held, held: found.held }
    this.#leases.set(id, lease)
    return lease
  }

  #find(requestId: string): StandingCharge | undefined {
    return this.#standing.get(requestId) ?? this.#rows.charges.get(requestId)
  }

  /** Completes the record of an Idempotency-Key; returns false if its owner has lost it. */
  #completeClaim(claim: SettledClaim): boolean {
    const name = claimName(claim)
    if (this.#freed.has(name) || !this.#rows.owns(claim)) return false
    this.#completed.set(name, claim)
    return true
  }

  #freeClaim(claim: IdempotencyClaim): void {
    const name = claimName(claim)
    this.#completed.delete(name)
    this.#freed.set(name, claim)
  }

  #log(entry: CallLogEntry): void {
    const { id } = entry
    const account = this.#rows.charges.get(id)?.account
    const unlessVoided = account != null && !this.#find(id)?.voided
    // Spends nothing, but locks the wallet: a void that is written at the same time comes before or after it.
    if (unlessVoided) this.#wallet(accountWallet(account))
    this.#entries.set(id, { entry, unlessVoided })
  }
}

/** Returns a name for the record of an Idempotency-Key together with its owner. */
export function claimName({ id, owner }: IdempotencyClaim): string {
  return `${id} ${owner}`
}

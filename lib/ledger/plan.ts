import type { CallLogEntry, IdempotencyClaim } from '../core/call/index.ts'
import { assertAmount, MAX_AMOUNT } from '../core/catalog/money.ts'
import { shareOfEntry, type UsageShare } from '../core/usage/index.ts'
import type { LeaseRecord, WalletFigures } from './lease.ts'
import type { ChargeRecord, Draw, SettledClaim, Settlement, SettlementResult } from './ledger.ts'
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

/** A charge to be written. */
export interface PlannedCharge {
  readonly charge: ChargeRecord
  /** Whether it is undone at once, and adds no usage. */
  readonly isUndone: boolean
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
  readonly draws: readonly Draw[]
  readonly charges: readonly PlannedCharge[]
  readonly voids: readonly PlannedVoid[]
  readonly completedClaims: readonly SettledClaim[]
  readonly freedClaims: readonly IdempotencyClaim[]
  readonly entries: readonly PlannedEntry[]
  /** The request ids whose holds end. */
  readonly closedHolds: readonly string[]
  readonly usage: {
    /** The usage of undone charges of the rows, which is taken away. */
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
  const results: SettlementResult[] = []
  for (const settlement of settlements) results.push(draft.settle(settlement))
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

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** A request id: what the rows have of it, and how the settlements so far leave it. */
interface DraftCall {
  readonly found: StandingCharge | undefined
  /** The charge that is written. */
  charge: ChargeRecord | undefined
  isVoided: boolean
  entry: PlannedEntry | undefined
}

/** The writes of the settlements so far. */
class Draft {
  readonly #rows: SettlementRows
  readonly #opened: WalletId[] = []
  readonly #wallets = new Map<WalletId, Writable<WalletChange>>()
  /** By lease. */
  readonly #draws = new Map<string, Writable<Draw>>()
  /** By request id. */
  readonly #calls = new Map<string, DraftCall>()
  /** By {@link claimName}. */
  readonly #claims = new Map<string, { readonly claim: SettledClaim; readonly isFreed: boolean }>()
  readonly #voids: PlannedVoid[] = []
  readonly #closedHolds: string[] = []
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
    const charges: PlannedCharge[] = []
    const entries: PlannedEntry[] = []
    for (const { charge, isVoided, entry } of this.#calls.values()) {
      if (charge) charges.push({ charge, isUndone: isVoided })
      if (entry) entries.push(entry)
    }
    const [completedClaims, freedClaims]: [SettledClaim[], SettledClaim[]] = [[], []]
    for (const { claim, isFreed } of this.#claims.values())
      (isFreed ? freedClaims : completedClaims).push(claim)
    return {
      results,
      openedWallets: this.#opened,
      wallets: [...this.#wallets.values()],
      draws: [...this.#draws.values()],
      charges,
      voids: this.#voids,
      completedClaims,
      freedClaims,
      entries,
      closedHolds: this.#closedHolds,
      usage: { undone: this.#undone, uncharged: this.#uncharged },
    }
  }

  #charge(settlement: Settlement): SettlementResult {
    const { requestId, claim } = settlement
    const isOwned = claim === null || this.#completeClaim(claim)
    const call = this.#call(requestId)
    const isCharged = chargeOf(call) !== undefined
    if (!isOwned && !isCharged) return 'fenced'
    if (!isCharged && !call.isVoided) {
      this.#write(settlement, call)
      return 'written'
    }
    this.#closeHold(settlement)
    // A charge that a void has undone stays undone, and the entry of the void stays. A claim that was still there is freed.
    if (!call.isVoided) this.#log(settlement.entry, call)
    else if (claim) this.#freeClaim(claim)
    return 'known'
  }

  #write(settlement: Settlement, call: DraftCall): void {
    const { amount, draws } = settlement
    call.charge = settlement
    const held = this.#closeHold(settlement)
    const overrun = held !== undefined && amount > held ? amount - held : 0n
    for (const id of walletsOf(settlement)) {
      const wallet = this.#payer(id)
      wallet.spent += amount
      wallet.overrun += overrun
    }
    for (const draw of draws) this.#draw(draw)
    this.#log(settlement.entry, call)
  }

  #void({ requestId, account, key, at, claim, entry }: Settlement): SettlementResult {
    const call = this.#call(requestId)
    const isKnown = call.isVoided
    if (!isKnown) {
      const charge = chargeOf(call)
      if (charge) this.#undo(requestId, charge, at)
      else {
        // Spends nothing, but locks the wallet: a charge that is written at the same time comes before or after it.
        this.#wallet(accountWallet(account))
        this.#voids.push({ requestId, account, key, amount: 0n, at, isFirst: true })
      }
      if (call.found?.usage) this.#undone.push(call.found.usage)
      const uncharged = entry && shareOfEntry(entry)
      if (uncharged) this.#uncharged.push(uncharged)
      call.isVoided = true
    }
    this.#log(entry, call)
    if (claim) this.#freeClaim(claim)
    return isKnown ? 'known' : 'written'
  }

  #undo(requestId: string, charge: Spender & { readonly amount: bigint }, at: number): void {
    const { account, key, amount } = charge
    this.#voids.push({ requestId, account, key, amount, at, isFirst: false })
    for (const id of walletsOf(charge)) this.#payer(id).spent -= amount
  }

  /** Returns what was held; undefined if there is no hold. */
  #closeHold(hold: Spender & { readonly requestId: string }): bigint | undefined {
    const { requestId } = hold
    const held = this.#closedHolds.includes(requestId) ? undefined : this.#rows.holds.get(requestId)
    if (held === undefined || held === 0n) return held
    this.#closedHolds.push(requestId)
    for (const id of walletsOf(hold)) this.#payer(id).leased -= held
    return held
  }

  /** Takes a part of a charge out of its lease. A part that the lease does not hold is an overrun of the wallet. */
  #draw({ lease, wallet: id, amount }: Draw): void {
    const wallet = this.#wallet(id)
    if (!wallet) return
    const found = this.#rows.leases.get(lease)
    const draw = this.#draws.get(lease) ?? { lease, wallet: id, amount: 0n }
    const left = found?.wallet === id && found.held > draw.amount ? found.held - draw.amount : 0n
    const drawn = amount < left ? amount : left
    wallet.leased -= drawn
    wallet.overrun += amount - drawn
    if (drawn === 0n) return
    draw.amount += drawn
    this.#draws.set(lease, draw)
  }

  /** Returns the change of a wallet that pays. A missing wallet is opened. */
  #payer(id: WalletId): Writable<WalletChange> {
    const known = this.#wallet(id)
    if (known) return known
    this.#opened.push(id)
    return this.#change(id)
  }

  /** Returns the change of a wallet; undefined for a missing one. */
  #wallet(id: WalletId): Writable<WalletChange> | undefined {
    return this.#wallets.get(id) ?? (this.#rows.wallets.get(id) && this.#change(id))
  }

  #change(id: WalletId): Writable<WalletChange> {
    const change = { id, spent: 0n, leased: 0n, overrun: 0n }
    this.#wallets.set(id, change)
    return change
  }

  #call(requestId: string): DraftCall {
    const known = this.#calls.get(requestId)
    if (known) return known
    const found = this.#rows.charges.get(requestId)
    const call = { found, charge: undefined, isVoided: found?.voided === true, entry: undefined }
    this.#calls.set(requestId, call)
    return call
  }

  /** Completes the record of an Idempotency-Key; returns false if its owner has lost it. */
  #completeClaim(claim: SettledClaim): boolean {
    const name = claimName(claim)
    if (this.#claims.get(name)?.isFreed || !this.#rows.owns(claim)) return false
    this.#claims.set(name, { claim, isFreed: false })
    return true
  }

  #freeClaim(claim: SettledClaim): void {
    this.#claims.set(claimName(claim), { claim, isFreed: true })
  }

  #log(entry: CallLogEntry | null, call: DraftCall): void {
    if (!entry) return
    const account = call.found?.account
    const unlessVoided = account != null && !call.isVoided
    // Spends nothing, but locks the wallet: a void that is written at the same time comes before or after it.
    if (unlessVoided) this.#wallet(accountWallet(account))
    call.entry = { entry, unlessVoided }
  }
}

/** Returns the charge of a request id, undone or not; undefined if there is none. */
function chargeOf({ charge, found }: DraftCall): (Spender & { readonly amount: bigint }) | undefined {
  if (charge || !found || found.account === null) return charge
  return { ...found, account: found.account }
}

/** Returns a name for the record of an Idempotency-Key together with its owner. */
export function claimName({ id, owner }: IdempotencyClaim): string {
  return `${id} ${owner}`
}

import type { CallLogEntry } from '../../../core/call/index.ts'
import { assertFigure, MAX_AMOUNT } from '../../../core/catalog/money.ts'
import { shareOfCharge, shareOfEntry, type UsageShare } from '../../../core/usage/index.ts'
import type { Settlement, SettlementResult, WalletId } from '../../../ledger/index.ts'
import type { LeaseRecord } from '../../../ledger/lease.ts'
import type { SettledClaim } from '../../../ledger/ledger.ts'
import {
  type SettlementRecords,
  type SpentFigures,
  type SpentWallets,
  type Standing,
  type StandingCharges,
  settle,
} from '../../../ledger/settlement.ts'
import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'
import { labelRows, WRITE_LABELS } from '../calls/call-labels.ts'
import { type Cell, cellsOf } from '../driver/columns.ts'
import type { RowWrite } from '../driver/row-statement.ts'
import { asCounted, UsageTally } from '../usage/usage-tally.ts'
import { MARK_TOLD, TELL_REACHED } from './budget-notices.ts'
import { CALL_COLUMNS, CHARGE_COLUMNS } from './settlement-columns.ts'
import {
  COMPLETE_CLAIMS,
  DRAW,
  FREE_CLAIMS,
  OPEN_WALLETS,
  SPEND,
  WRITE_CALLS,
  WRITE_CHARGES,
  WRITE_EARLY_VOIDS,
  WRITE_KNOWN_CALLS,
  WRITE_VOIDS,
} from './settlement-statements.ts'

/** The rows that a batch needs. */
export interface FoundRows {
  readonly wallets: ReadonlyMap<WalletId, SpentFigures>
  readonly leases: ReadonlyMap<string, Pick<LeaseRecord, 'wallet' | 'held'>>
  readonly standing: ReadonlyMap<string, CountedCharge>
  /** The claims that still belong to their owner, by {@link claimName}. */
  readonly claims: ReadonlySet<string>
}

/** A charge, and what it added to usage; null: nothing yet. */
export interface CountedCharge extends Standing {
  readonly share: UsageShare | null
}

/** A wallet or lease before and after the batch. */
interface Changed<Figures> {
  readonly found: Readonly<Figures>
  readonly now: Figures
}

type LeaseFigures = { readonly wallet: WalletId; held: bigint }

const NOTHING_SPENT: SpentFigures = { spent: 0n, leased: 0n, overrun: 0n }

/**
 * Settles many calls on rows in memory, and returns the rows to write to the database.
 *
 * Without rows, it assumes what holds for almost every batch: all charges are new, claims belong to their owners,
 * wallets exist, and leases hold enough. Its writes succeed only if that is so.
 */
export class SettlementBatch implements SettlementRecords, SpentWallets, StandingCharges {
  readonly results: readonly SettlementResult[]
  readonly wallets = this
  readonly charges = this
  readonly #found: FoundRows | undefined
  readonly #wallets = new Map<WalletId, Changed<SpentFigures>>()
  readonly #leases = new Map<string, Changed<LeaseFigures>>()
  readonly #opened: Cell[][] = []
  /** The wallets of budgets that are charged, and when. */
  readonly #budgets = new Map<WalletId, number>()
  readonly #standing = new Map<string, CountedCharge>()
  readonly #usage = new UsageTally()
  readonly #charges: Cell[][] = []
  readonly #voids: Cell[][] = []
  readonly #earlyVoids: Cell[][] = []
  /** By {@link claimName}. */
  readonly #completed = new Map<string, SettledClaim>()
  readonly #freed = new Map<string, SettledClaim>()
  readonly #entries = new Map<string, CallLogEntry>()
  /** Those of charges that stood before the batch, and stand behind it. */
  readonly #known = new Map<string, CallLogEntry>()

  constructor(settlements: readonly Settlement[], found?: FoundRows) {
    this.#found = found
    this.results = settlements.map((settlement) => settle(settlement, this))
  }

  /** @throws RangeError if a figure does not fit the database. */
  assertFigures(): void {
    for (const [id, { now }] of this.#wallets) {
      assertFigure(now.spent, `spent of "${id}"`)
      assertFigure(now.leased, `leased of "${id}"`)
      assertFigure(now.overrun, `overrun of "${id}"`)
    }
  }

  /** Returns the writes, in the order in which all writers lock such rows. */
  writes(): RowWrite[] {
    return [
      { statement: OPEN_WALLETS, rows: this.#opened },
      { statement: SPEND, rows: Array.from(this.#wallets, spendRow) },
      { statement: TELL_REACHED, rows: Array.from(this.#budgets, ([id, at]) => [id, at]) },
      { statement: MARK_TOLD, rows: Array.from(this.#budgets.keys(), (id) => [id]) },
      { statement: COMPLETE_CLAIMS, rows: Array.from(this.#completed.values(), completedRow) },
      { statement: FREE_CLAIMS, rows: Array.from(this.#freed.values(), ({ id, owner }) => [id, owner]) },
      { statement: WRITE_CHARGES, rows: this.#charges },
      { statement: WRITE_VOIDS, rows: this.#voids },
      { statement: WRITE_EARLY_VOIDS, rows: this.#earlyVoids },
      { statement: DRAW, rows: Array.from(this.#leases, drawRow).filter(([, , drawn]) => drawn !== 0n) },
      {
        statement: WRITE_CALLS,
        rows: Array.from(this.#entries.values(), (entry) => cellsOf(CALL_COLUMNS, entry)),
      },
      {
        statement: WRITE_KNOWN_CALLS,
        rows: Array.from(this.#known.values(), (entry) => cellsOf(CALL_COLUMNS, entry)),
      },
      { statement: WRITE_LABELS, rows: labelRows([...this.#entries.values(), ...this.#known.values()]) },
      this.#usage.write(),
    ]
  }

  find(requestId: string): CountedCharge | undefined {
    return this.#standing.get(requestId) ?? this.#found?.standing.get(requestId)
  }

  add(given: Settlement): void {
    const charge = asCounted(given)
    const { requestId, account, key, amount, budgets } = charge
    const share = shareOfCharge(charge)
    this.#usage.add(share)
    this.#standing.set(requestId, { account, key, amount, budgets, voided: false, share })
    if (budgets) for (const id of budgets) this.#budgets.set(id, charge.at)
    this.#charges.push(cellsOf(CHARGE_COLUMNS, charge))
  }

  void({ requestId, account: asked, key: askedKey, at, entry }: Settlement): void {
    const nothing: CountedCharge = { account: null, key: null, amount: 0n, voided: false, share: null }
    const { account, key, budgets, amount, share } = this.find(requestId) ?? nothing
    if (share) this.#usage.takeAway(share)
    const counted = share || account === null ? 1 : null
    this.#standing.set(requestId, { account, key, budgets, amount, voided: true, share: null })
    if (account === null) {
      // Spends nothing, and locks the wallet: a charge that is written at the same time comes before or behind it.
      this.get(accountWallet(asked))
      this.#earlyVoids.push([requestId, asked, askedKey, amount, at, counted])
    } else this.#voids.push([requestId, account, key, amount, at, counted])
    // Where usage does not have the charge yet, it does not have the call either, and counts both later.
    const left = counted && entry && shareOfEntry(entry)
    if (left) this.#usage.add(left)
  }

  account(id: string): SpentFigures {
    return this.#walletOrNew(accountWallet(id))
  }

  key(id: string): SpentFigures {
    return this.#walletOrNew(keyWallet(id))
  }

  budget(id: WalletId): SpentFigures {
    return this.#walletOrNew(id)
  }

  get(id: WalletId): SpentFigures | undefined {
    const known = this.#wallets.get(id)
    if (known) return known.now
    const found = this.#found ? this.#found.wallets.get(id) : NOTHING_SPENT
    return found && this.#keep(id, found)
  }

  lease(id: string, wallet: WalletId): LeaseFigures | undefined {
    const known = this.#leases.get(id)
    if (known) return known.now
    const found = this.#found ? this.#found.leases.get(id) : { wallet, held: MAX_AMOUNT }
    if (!found) return undefined
    const now = { wallet: found.wallet, held: found.held }
    this.#leases.set(id, { found, now })
    return now
  }

  completeClaim(claim: SettledClaim): boolean {
    const name = claimName(claim)
    if (this.#freed.has(name) || (this.#found && !this.#found.claims.has(name))) return false
    this.#completed.set(name, claim)
    return true
  }

  freeClaim(claim: SettledClaim): void {
    const name = claimName(claim)
    this.#completed.delete(name)
    this.#freed.set(name, claim)
  }

  log(entry: CallLogEntry): void {
    const { id } = entry
    const account = this.#found?.standing.get(id)?.account
    this.#known.delete(id)
    if (account == null || this.find(id)?.voided) {
      this.#entries.set(id, entry)
      return
    }
    // Spends nothing, and locks the wallet: a void that is written at the same time comes before or behind it.
    this.get(accountWallet(account))
    this.#known.set(id, entry)
  }

  #walletOrNew(id: WalletId): SpentFigures {
    const known = this.get(id)
    if (known) return known
    this.#opened.push([id])
    return this.#keep(id, NOTHING_SPENT)
  }

  #keep(id: WalletId, { spent, leased, overrun }: SpentFigures): SpentFigures {
    const now = { spent, leased, overrun }
    this.#wallets.set(id, { found: { spent, leased, overrun }, now })
    return now
  }
}

/** Returns a name for the record of an Idempotency-Key together with its owner. */
export function claimName({ id, owner }: { readonly id: string; readonly owner: string }): string {
  return `${id} ${owner}`
}

function spendRow([id, { found, now }]: [WalletId, Changed<SpentFigures>]): Cell[] {
  return [id, now.spent - found.spent, found.leased - now.leased, now.overrun - found.overrun]
}

function drawRow([id, { found, now }]: [string, Changed<LeaseFigures>]): Cell[] {
  return [id, now.wallet, found.held - now.held]
}

function completedRow({ id, owner, keepUntil }: SettledClaim): Cell[] {
  return [id, owner, keepUntil]
}

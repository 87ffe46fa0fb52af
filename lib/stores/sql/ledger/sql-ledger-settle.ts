import type { IdempotencyClaim } from '../../../core/call/index.ts'
import type { Settlement, SettlementResult } from '../../../ledger/index.ts'
import { drawLease } from '../../../ledger/lease.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import { callRowOf } from '../calls/call-row.ts'
import { CallRows } from '../calls/call-rows.ts'
import type { CallsTable, Database } from '../driver/tables.ts'
import type { SettlementRow } from './settlement-cells.ts'
import { ChargeRows, type Standing, type UndoneCharge } from './sql-ledger-charges.ts'
import { ClaimRows, claimName } from './sql-ledger-claims.ts'
import { LeaseRows, type LockedWallet, WalletRows } from './sql-ledger-rows.ts'

export function settlementRowOf(settlement: Settlement): SettlementRow {
  const { entry } = settlement
  return { ...settlement, entry: entry && callRowOf(entry) }
}

/** A settlement at its place in the batch. */
interface Placed {
  readonly settlement: SettlementRow
  readonly index: number
}

/** What a batch has come to so far. */
interface Batch {
  readonly results: SettlementResult[]
  /** Charges that are new: they alone move money. */
  readonly charged: SettlementRow[]
  readonly undone: UndoneCharge[]
  /** By their ids: what settles a call last knows best what became of it. */
  readonly entries: Map<string, CallsTable>
}

/** Settles many calls in one transaction. */
export class Settling {
  readonly #wallets: WalletRows
  readonly #leases: LeaseRows
  readonly #charges: ChargeRows
  readonly #claims: ClaimRows
  readonly #calls: CallRows

  constructor(db: Database) {
    this.#wallets = new WalletRows(db)
    this.#leases = new LeaseRows(db)
    this.#charges = new ChargeRows(db)
    this.#claims = new ClaimRows(db)
    this.#calls = new CallRows(db, { replaces: true })
  }

  async settle(trx: Database, settlements: readonly SettlementRow[]): Promise<readonly SettlementResult[]> {
    const wallets = await this.#wallets.lock(trx, settlements.flatMap(walletsOf))
    const batch: Batch = { results: [], charged: [], undone: [], entries: new Map() }
    for (const { charges, voids } of roundsOf(settlements)) {
      if (charges.length > 0) await this.#charge(trx, charges, batch)
      if (voids.length > 0) await this.#void(trx, voids, batch)
    }
    await this.#move(trx, batch, wallets)
    await this.#calls.insert(trx, [...batch.entries.values()])
    return batch.results
  }

  async #charge(trx: Database, charges: readonly Placed[], batch: Batch): Promise<void> {
    const claims = charges.flatMap(({ settlement }) => settlement.claim ?? [])
    const own = claims.length > 0 ? await this.#claims.complete(trx, claims) : NONE
    const lost = ({ settlement: { claim } }: Placed) => claim !== null && !own.has(claimName(claim))
    const wanted = charges.flatMap((charge) => (lost(charge) ? [] : charge.settlement))
    const written = await this.#charges.insert(trx, wanted)
    const others: Placed[] = []
    for (const charge of charges) {
      const { settlement } = charge
      if (!written.has(settlement.requestId)) {
        others.push(charge)
        continue
      }
      batch.charged.push(settlement)
      conclude(batch, charge, 'written')
    }
    if (others.length > 0) await this.#explain(trx, others, lost, batch)
  }

  /** Why charges were not written. */
  async #explain(
    trx: Database,
    charges: readonly Placed[],
    lost: (charge: Placed) => boolean,
    batch: Batch,
  ): Promise<void> {
    const standing = await this.#charges.standing(
      trx,
      charges.map(({ settlement }) => settlement.requestId),
    )
    const freed: IdempotencyClaim[] = []
    for (const charge of charges) {
      const { charged, voided } = standing.get(charge.settlement.requestId) ?? NOTHING
      if (lost(charge) && !charged) {
        conclude(batch, charge, 'fenced', false)
        continue
      }
      // What a void has undone stays so: its entry, and its claim, which was still there to be completed.
      conclude(batch, charge, 'known', !voided)
      if (voided && charge.settlement.claim) freed.push(charge.settlement.claim)
    }
    if (freed.length > 0) await this.#claims.free(trx, freed)
  }

  async #void(trx: Database, voids: readonly Placed[], batch: Batch): Promise<void> {
    const { written, undone } = await this.#charges.void(
      trx,
      voids.map(({ settlement }) => settlement),
    )
    batch.undone.push(...undone)
    for (const placed of voids) {
      conclude(batch, placed, written.has(placed.settlement.requestId) ? 'written' : 'known')
    }
    const claims = voids.flatMap(({ settlement }) => settlement.claim ?? [])
    if (claims.length > 0) await this.#claims.free(trx, claims)
  }

  async #move(
    trx: Database,
    { charged, undone }: Batch,
    locked: ReadonlyMap<WalletId, LockedWallet>,
  ): Promise<void> {
    const leases = await this.#leases.lock(
      trx,
      charged.flatMap(({ draws }) => draws.map(({ lease }) => lease)),
    )
    const named = [...charged, ...undone].flatMap(walletsOfCharge)
    const missing = named.filter((id) => !locked.has(id))
    const opened = await this.#wallets.open(trx, missing, false)
    const moved = new Map<WalletId, LockedWallet>()
    const spend = (charge: Charged, amount: bigint) => {
      for (const id of walletsOfCharge(charge)) {
        const wallet = moved.get(id) ?? locked.get(id) ?? opened.get(id)
        if (!wallet) continue
        wallet.spent += amount
        moved.set(id, wallet)
      }
    }
    for (const charge of charged) {
      spend(charge, charge.amount)
      for (const draw of charge.draws) {
        const wallet = moved.get(draw.wallet) ?? locked.get(draw.wallet)
        if (!wallet) continue
        drawLease(wallet, leases.get(draw.lease), draw)
        moved.set(wallet.id, wallet)
      }
    }
    for (const charge of undone) spend(charge, -charge.amount)
    await this.#leases.save(trx, leases.values())
    await this.#wallets.save(trx, moved.values())
  }
}

const NONE: ReadonlySet<string> = new Set()
const NOTHING: Standing = { charged: false, voided: false }

type Charged = Pick<Settlement, 'account' | 'key'>

function walletsOfCharge({ account, key }: Charged): WalletId[] {
  return key === null ? [accountWallet(account)] : [accountWallet(account), keyWallet(key)]
}

function walletsOf(settlement: SettlementRow): WalletId[] {
  return [...walletsOfCharge(settlement), ...settlement.draws.map(({ wallet }) => wallet)]
}

/**
 * What may be written at once: in each round a request id comes once at most, and what comes again comes in a later
 * one.
 */
function roundsOf(settlements: readonly SettlementRow[]): { charges: Placed[]; voids: Placed[] }[] {
  const rounds: { charges: Placed[]; voids: Placed[] }[] = []
  const seen = new Map<string, number>()
  for (const [index, settlement] of settlements.entries()) {
    const turn = seen.get(settlement.requestId) ?? 0
    seen.set(settlement.requestId, turn + 1)
    rounds[turn] ??= { charges: [], voids: [] }
    rounds[turn][settlement.kind === 'charge' ? 'charges' : 'voids'].push({ settlement, index })
  }
  return rounds
}

/** Notes what came of a settlement. */
function conclude(
  { results, entries }: Batch,
  { settlement: { entry }, index }: Placed,
  result: SettlementResult,
  logged = true,
): void {
  results[index] = result
  if (entry && logged) entries.set(entry.id, entry)
}

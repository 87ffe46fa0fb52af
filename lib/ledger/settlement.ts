import type { CallLogEntry } from '../core/call/index.ts'
import { drawLease, type LeaseRecord, type WalletFigures } from './lease.ts'
import type { SettledClaim, Settlement, SettlementResult } from './ledger.ts'
import type { WalletId } from './wallet.ts'

/*
 * What a settlement does: the rules that every ledger keeps, whatever it keeps its records in. A charge is written once
 * for its request id, and not at all where its claim was lost or a void came first; only one that is written moves money.
 */

/** What stands under a request id: a charge, undone or not, or a void that came before any. */
export interface Standing {
  /** Who was charged; null where there is only a void. */
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint
  readonly voided: boolean
}

/** The figures of a wallet that settlements change. */
export type SpentFigures = Pick<WalletFigures, 'spent' | 'leased' | 'overrun'>

/** What settlements read and change. Who settles has all of it for itself meanwhile. */
export interface SettlementRecords {
  standing(requestId: string): Standing | undefined
  addCharge(charge: Settlement): void
  /** @param undone what stood before. */
  addVoid(undoing: Settlement, undone: Standing | undefined): void
  /** The wallet of an account; it is opened, not limited, where it is not there. */
  account(id: string): SpentFigures
  /** The wallet of a key; it is opened, not limited, where it is not there. */
  key(id: string): SpentFigures
  wallet(id: WalletId): SpentFigures | undefined
  /** @param wallet that the lease is said to be on. */
  lease(id: string, wallet: WalletId): Pick<LeaseRecord, 'wallet' | 'held'> | undefined
  /** Completes an Idempotency-Key's record; false where it is not its owner's any more. */
  completeClaim(claim: SettledClaim): boolean
  /** Frees a record that is still its owner's, completed or not. */
  freeClaim(claim: SettledClaim): void
  /** Writes a log entry, in the place of an earlier one: what settles a call last knows best what became of it. */
  log(entry: CallLogEntry): void
}

/** Settles one call. */
export function settle(settlement: Settlement, records: SettlementRecords): SettlementResult {
  return settlement.kind === 'charge' ? charge(settlement, records) : undo(settlement, records)
}

function charge(settlement: Settlement, records: SettlementRecords): SettlementResult {
  const { requestId, account, key, amount, draws, claim, entry } = settlement
  const isOwned = claim === null || records.completeClaim(claim)
  const standing = records.standing(requestId)
  if (!standing && isOwned) {
    records.addCharge(settlement)
    spend(records, account, key, amount)
    for (const draw of draws) {
      const wallet = records.wallet(draw.wallet)
      if (wallet) drawLease(wallet, records.lease(draw.lease, draw.wallet), draw)
    }
    if (entry) records.log(entry)
    return 'written'
  }
  if (!isOwned && (standing?.account ?? null) === null) return 'fenced'
  // What a void has undone stays so: its entry, and its claim, which was still there to be completed.
  if (!standing?.voided) {
    if (entry) records.log(entry)
  } else if (claim) records.freeClaim(claim)
  return 'known'
}

function undo(settlement: Settlement, records: SettlementRecords): SettlementResult {
  const { requestId, claim, entry } = settlement
  const standing = records.standing(requestId)
  const isKnown = standing?.voided === true
  if (!isKnown) {
    records.addVoid(settlement, standing)
    if (standing && standing.account !== null) {
      spend(records, standing.account, standing.key, -standing.amount)
    }
  }
  if (entry) records.log(entry)
  if (claim) records.freeClaim(claim)
  return isKnown ? 'known' : 'written'
}

function spend(records: SettlementRecords, account: string, key: string | null, amount: bigint): void {
  records.account(account).spent += amount
  if (key !== null) records.key(key).spent += amount
}

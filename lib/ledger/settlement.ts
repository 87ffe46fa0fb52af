import type { CallLogEntry } from '../core/call/index.ts'
import { assertAmount } from '../core/catalog/money.ts'
import type { LeaseRecord, WalletFigures } from './lease.ts'
import type { Draw, SettledClaim, Settlement, SettlementResult } from './ledger.ts'
import type { Spender, WalletId } from './wallet.ts'

/*
 * What a settlement does: the rules that every ledger keeps, whatever it keeps its records in. A charge is written once
 * for its request id, and not at all where its claim was lost or a void came first; only one that is written moves money.
 */

/** The state of a request id: a charge, undone or not, or a void that came before any charge. */
export interface Standing {
  /** The charged account; null if there is only a void. */
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint
  readonly voided: boolean
  /** The wallets of its budgets. Absent: none. */
  readonly budgets?: readonly WalletId[] | undefined
}

/** The sums of a wallet that settlements change. */
export type SpentFigures = Pick<WalletFigures, 'spent' | 'leased' | 'overrun'>

/** The wallets that settlements spend from. */
export interface SpentWallets {
  /** Returns the wallet of an account; a missing one is opened without a limit. */
  account(id: string): SpentFigures
  /** Returns the wallet of a key; a missing one is opened without a limit. */
  key(id: string): SpentFigures
  /** Returns the wallet of a budget; a missing one is opened without a limit. */
  budget(id: WalletId): SpentFigures
  get(id: WalletId): SpentFigures | undefined
}

/** Charges and voids by their request id. */
export interface StandingCharges {
  find(requestId: string): Standing | undefined
  add(charge: Settlement): void
  /** @param standing the previous state. */
  void(undoing: Settlement, standing: Standing | undefined): void
}

/** The records that settlements read and change. Each settlement has exclusive access. */
export interface SettlementRecords {
  readonly wallets: SpentWallets
  readonly charges: StandingCharges
  /** @param wallet the wallet that the settlement names for the lease. */
  lease(id: string, wallet: WalletId): Pick<LeaseRecord, 'wallet' | 'held'> | undefined
  /** Completes the record of an Idempotency-Key; returns false if its owner has lost it. */
  completeClaim(claim: SettledClaim): boolean
  /** Frees a record that still belongs to its owner, completed or not. */
  freeClaim(claim: SettledClaim): void
  /** Writes a log entry. It replaces an earlier one, because the last settlement has the final result of the call. */
  log(entry: CallLogEntry): void
}

/** @throws RangeError if an amount of the settlement is not valid. */
export function assertSettlement({ requestId, amount, draws }: Settlement): void {
  assertAmount(amount, requestId)
  for (const draw of draws) assertAmount(draw.amount, requestId)
}

/** Settles one call: writes its charge, undoes it, or both. */
export function settle(
  settlement: Settlement,
  records: SettlementRecords,
  kind: Settlement['kind'] = settlement.kind,
): SettlementResult {
  if (kind === 'void') return undo(settlement, records)
  if (kind === 'revoked') {
    const result = settle(settlement, records, 'charge')
    undo(settlement, records)
    return result
  }
  const { requestId, amount, claim } = settlement
  const isOwned = claim === null || records.completeClaim(claim)
  const standing = records.charges.find(requestId)
  if (!standing && isOwned) {
    records.charges.add(settlement)
    spend(records.wallets, settlement, amount)
    for (const draw of settlement.draws) {
      const wallet = records.wallets.get(draw.wallet)
      if (wallet) take(draw, wallet, records.lease(draw.lease, draw.wallet))
    }
    const { entry } = settlement
    if (entry) records.log(entry)
    return 'written'
  }
  if (!isOwned && (standing?.account ?? null) === null) return 'fenced'
  // A charge that a void has undone stays undone. So do its entry, and the claim, which was still there to be
  // completed.
  const { entry } = settlement
  if (standing?.voided) {
    if (claim) records.freeClaim(claim)
  } else if (entry) records.log(entry)
  return 'known'
}

function undo(settlement: Settlement, records: SettlementRecords): SettlementResult {
  const { requestId, claim, entry } = settlement
  const standing = records.charges.find(requestId)
  const isKnown = standing?.voided === true
  if (!isKnown) {
    records.charges.void(settlement, standing)
    if (standing && standing.account !== null) {
      const { account, key, budgets, amount } = standing
      spend(records.wallets, { account, key, budgets }, -amount)
    }
  }
  if (entry) records.log(entry)
  if (claim) records.freeClaim(claim)
  return isKnown ? 'known' : 'written'
}

function spend(wallets: SpentWallets, { account, key, budgets }: Spender, amount: bigint): void {
  wallets.account(account).spent += amount
  if (key !== null) wallets.key(key).spent += amount
  if (budgets) for (const id of budgets) wallets.budget(id).spent += amount
}

/** Takes the held amount of a charge out of its lease. What the lease does not hold is an overrun of the wallet. */
function take(
  { wallet: id, amount }: Draw,
  wallet: SpentFigures,
  lease: Pick<LeaseRecord, 'wallet' | 'held'> | undefined,
): void {
  let drawn = 0n
  if (lease && lease.wallet === id && lease.held > 0n) {
    drawn = amount < lease.held ? amount : lease.held
    lease.held -= drawn
  }
  wallet.leased -= drawn
  if (drawn < amount) wallet.overrun += amount - drawn
}

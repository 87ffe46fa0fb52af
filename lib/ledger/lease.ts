import { assertAmount, greatest, least } from '../core/catalog/money.ts'
import type { LeaseAnswer, LeaseChange, WalletState } from './ledger.ts'
import type { WalletId } from './wallet.ts'

/*
 * The rules of changes of a lease and its wallet, for every ledger, however it stores them.
 * The caller must hold a lock on both.
 */

/** The sums of a wallet, which changes update. */
export interface WalletFigures {
  limited: boolean
  funds: bigint
  spent: bigint
  leased: bigint
  overrun: bigint
}

/** A lease. A lease that has ended holds nothing. It is kept for a while, so that a repeated change gets an answer. */
export interface LeaseRecord {
  readonly id: string
  readonly wallet: WalletId
  readonly owner: string
  held: bigint
  /** The number of the last change. */
  seq: number
  /** The amount that the last change moved. */
  lastMoved: bigint
  beats: number
  renewedAt: number
  /** How the lease ended: `closed` by its owner, or `swept`; null while it is open. */
  ended: 'closed' | 'swept' | null
  endedAt: number | null
}

/** How long an ended lease is kept. After this time no change of it is repeated. */
export const ENDED_KEPT_MS = 600_000

/** @throws RangeError if an amount of the change or its `seq` is not valid. */
export function assertChange({ lease, seq, change }: LeaseChange): void {
  if (!(Number.isSafeInteger(seq) && seq >= 1))
    throw new RangeError(`lease "${lease}": seq must be at least 1`)
  const amounts = change.kind === 'take' ? [change.need, change.want] : [change.amount]
  for (const amount of amounts) assertAmount(amount, `lease "${lease}"`)
}

export interface Changed {
  readonly answer: LeaseAnswer
  /** The lease to be stored; undefined if nothing changed. */
  readonly lease: LeaseRecord | undefined
}

/** Makes one change. Updates `wallet` and `lease` if it moves something. */
export function changeLease(
  wallet: WalletFigures | undefined,
  lease: LeaseRecord | undefined,
  asked: LeaseChange & { readonly owner: string },
  now: number,
): Changed {
  const { seq, change } = asked
  const answer = (moved: bigint, open: boolean): LeaseAnswer => ({
    moved,
    lost: false,
    open,
    state: wallet && stateOf(wallet),
  })
  const lost = (): Changed => ({ answer: { ...answer(0n, false), lost: true }, lease: undefined })
  if (!wallet) return { answer: answer(0n, false), lease: undefined }
  if (!lease) {
    if (change.kind === 'give' || seq !== 1) return lost()
    const moved = mayTake(wallet, change)
    if (moved === 0n) return { answer: answer(0n, false), lease: undefined }
    wallet.leased += moved
    return { answer: answer(moved, true), lease: opened(asked, moved, now) }
  }
  if (lease.wallet !== asked.wallet || lease.ended === 'swept') return lost()
  // A repeated change, or one that is so late that later changes have been made already.
  if (seq <= lease.seq)
    return { answer: answer(seq === lease.seq ? lease.lastMoved : 0n, !lease.ended), lease: undefined }
  if (lease.ended) return lost()
  const moved = change.kind === 'take' ? mayTake(wallet, change) : least(change.amount, lease.held)
  const step = change.kind === 'take' ? moved : -moved
  lease.held += step
  wallet.leased += step
  Object.assign(lease, { seq, lastMoved: moved, beats: lease.beats + 1, renewedAt: now })
  if (change.kind === 'give' && lease.held === 0n) Object.assign(lease, { ended: 'closed', endedAt: now })
  return { answer: answer(moved, !lease.ended), lease }
}

/** Returns everything that a lease holds to its wallet, and ends the lease. */
export function sweepLease(wallet: WalletFigures, lease: LeaseRecord, now: number): void {
  wallet.leased -= lease.held
  Object.assign(lease, { held: 0n, ended: 'swept', endedAt: now })
}

/** Returns the public state of a wallet. */
export function stateOf({ limited, funds, spent, leased }: WalletFigures): WalletState {
  return { limited, funds, spent, leased }
}

function mayTake(
  { limited, funds, spent, leased }: WalletFigures,
  ask: { need: bigint; want: bigint },
): bigint {
  const available = funds - spent - leased
  if (!limited || available <= 0n || available < ask.need) return 0n
  const tenth = available / 10n
  return greatest(ask.need, least(ask.want, tenth))
}

function opened(asked: LeaseChange & { readonly owner: string }, held: bigint, now: number): LeaseRecord {
  const { lease: id, wallet, owner, seq } = asked
  const fresh = { lastMoved: held, beats: 1, renewedAt: now, ended: null, endedAt: null }
  return { id, wallet, owner, held, seq, ...fresh }
}

import type { Draw, LeaseAnswer, LeaseChange } from '../ledger.ts'
import type { WalletId } from '../wallet.ts'
import { type Clock, type Moment, momentOf } from './clock.ts'
import { HeldLease } from './held-lease.ts'
import { TopUpPolicy } from './top-up-policy.ts'
import { WalletSnapshot } from './wallet-snapshot.ts'

/** Part of a charge that a lease pays. */
export interface HeldDraw extends Draw {
  readonly from: WalletLease
  readonly held: HeldLease
}

/** The calls that wait for money of a wallet. */
export interface Admissions {
  /** Their amounts, in the order in which they are served. */
  amountsFor(wallet: WalletLease): readonly bigint[]
  /** Something came back that may serve them. */
  serveSoon(): void
  /** Admits and refuses, now that the ledger has told of those wallets. */
  serve(told: readonly WalletLease[]): void
}

/** What a wallet needs of its pool. */
export interface WalletDeps {
  readonly clock: Clock
  /** Counted over the life of the pool, for metrics: leases that were gone or given up, charges that drew on one. */
  readonly figures: { lost: number; overruns: number }
  /** Whether all is to be given back. */
  readonly closing: boolean
  /** Sees to it that the wallet is asked what the ledger is to be asked for. */
  ask(wallet: WalletLease): void
  newLeaseId(): string
}

/** What is not used for that long goes back, and is forgotten, in milliseconds. */
const IDLE_MS = 10_000

/** One wallet as this process sees it: what the ledger told of it, and the lease that the process has on it. */
export class WalletLease {
  /** Of the account or key. */
  readonly id: string
  readonly wallet: WalletId
  readonly admissions: Admissions
  /** What the ledger told of it. */
  readonly snapshot = new WalletSnapshot()
  /** Charges that were not handed to the ledger yet: surely not part of what it says is spent. */
  unhanded = 0n
  readonly #deps: WalletDeps
  readonly #policy: TopUpPolicy
  #lease: HeldLease | undefined
  #usedAt: number
  #asked: { change: LeaseChange; lease: HeldLease; at: Moment } | undefined
  /** Where less than this is free, more is asked for in the background. */
  #low = 0n

  constructor(id: string, wallet: WalletId, admissions: Admissions, deps: WalletDeps) {
    this.id = id
    this.wallet = wallet
    this.admissions = admissions
    this.#deps = deps
    this.#usedAt = deps.clock.now()
    this.#policy = new TopUpPolicy(this.#usedAt)
  }

  /** The lease that calls are admitted on, once the ledger was asked for it. */
  get lease(): HeldLease | undefined {
    return this.#lease?.seq ? this.#lease : undefined
  }

  /** Whether the ledger was asked for a change that it has not answered yet. */
  get isAsking(): boolean {
    return this.#asked !== undefined
  }

  /** Whether a call of that cost can be admitted at once. */
  covers(amount: bigint, now: number, wall: number): boolean {
    if (amount === 0n) return true
    if (this.snapshot.limited === false) return this.snapshot.isUnlimited(now)
    const lease = this.#lease
    return lease !== undefined && lease.free >= amount && lease.isUsable(now, wall)
  }

  /** Holds what {@link covers} has found; undefined where nothing need be held. */
  hold(amount: bigint, now: number): HeldLease | undefined {
    const lease = this.#lease
    this.#usedAt = now
    if (!lease || this.snapshot.limited === false || lease.free < amount) return undefined
    lease.reserved += amount
    lease.free -= amount
    this.#policy.admitted(amount, lease.reserved, lease.free)
    if (lease.free < this.#low) {
      this.#low = lease.free / 2n
      this.#deps.ask(this)
    }
    return lease
  }

  /** Gives back what {@link hold} has held. */
  release(lease: HeldLease | undefined, amount: bigint): void {
    if (!lease) return
    lease.reserved -= amount
    lease.free += amount
    this.#cameBack()
  }

  /**
   * Draws what a call of {@link hold} costs. What was held for it pays, and what is free beside it; the rest is for the
   * wallet itself.
   *
   * @returns what the lease pays; undefined where it pays nothing.
   */
  draw(lease: HeldLease | undefined, amount: bigint, cost: bigint): HeldDraw | undefined {
    this.#policy.spent += cost
    if (lease) {
      lease.reserved -= amount
      lease.free += amount
    }
    const held = lease ?? this.#lease
    // What is free in a lease that is gone is not there.
    const most = held ? (held.lost ? amount : held.free) : 0n
    const drawn = cost < most ? cost : most
    this.#cameBack()
    if (!held || drawn === 0n) return undefined
    held.free -= drawn
    held.drawing += drawn
    if (held.lost) this.#deps.figures.overruns++
    return { lease: held.id, wallet: this.wallet, amount: drawn, from: this, held }
  }

  /** Notes that what was drawn has been taken or, where it is `returned`, is in the lease still. */
  drawn({ held, amount }: HeldDraw, returned: boolean): void {
    held.drawing -= amount
    if (returned) held.free += amount
    // A call that ends behind the closing has perhaps emptied the lease, which is then to be closed.
    if (returned || this.#deps.closing) this.#cameBack()
  }

  /** Gives up a lease that is gone, or of which nobody knows what it holds. It ends by itself, or is swept. */
  drop(lease: HeldLease): void {
    if (lease.lost) return
    lease.lost = true
    this.#deps.figures.lost++
    if (this.#lease === lease) this.#lease = undefined
  }

  /** What the ledger is to be asked for now: what it has not answered yet, or something new, or nothing. */
  nextChange(): LeaseChange | undefined {
    if (this.#asked) return this.#asked.change
    const change = this.#takeForWaiting() ?? this.#give() ?? this.#takeAhead()
    if (!change) return undefined
    this.#lease ??= new HeldLease(this.#deps.newLeaseId())
    const lease = this.#lease
    if (change.kind === 'give') {
      lease.free -= change.amount
      this.#policy.restart()
    }
    lease.seq++
    const at = momentOf(this.#deps.clock)
    this.#asked = { change: { lease: lease.id, wallet: this.wallet, seq: lease.seq, change }, lease, at }
    return this.#asked.change
  }

  /** Takes the ledger's answer to {@link nextChange}. */
  answered({ moved, lost, open, state }: LeaseAnswer): void {
    if (!this.#asked) return
    const { change, lease, at } = this.#asked
    this.#asked = undefined
    this.snapshot.update(state, at.now)
    if (lost) this.drop(lease)
    else if (change.change.kind === 'take') {
      lease.free += moved
      // It was not opened: the first change can be asked for again.
      if (moved === 0n && lease.seq === 1) lease.seq = 0
      this.#policy.taken(moved, change.change.need)
    } else if (!open && this.#lease === lease) this.#lease = undefined
    lease.confirm(at)
    this.#low = ((this.#lease?.free ?? 0n) - sumOf(this.admissions.amountsFor(this))) / 2n
  }

  /** What calls could get of it, as of the last answer; undefined where it is not limited. */
  get reach(): bigint | undefined {
    return this.snapshot.limited ? (this.#lease?.free ?? 0n) + this.snapshot.available : undefined
  }

  /** Asks, about once a second, for what grows, shrinks, is old or idle to be seen to. */
  tick(): void {
    const lease = this.#lease
    const now = this.#deps.clock.now()
    this.#policy.tick(now, lease?.reserved ?? 0n, lease?.free ?? 0n)
    if (this.#asked) return
    const needsChange = (this.#isIdle && this.lease !== undefined) || this.#lacks > 0n || this.#spare > 0n
    if (needsChange || this.snapshot.isOld(now, this.#usedAt)) this.#deps.ask(this)
  }

  /** Whether it can be forgotten. */
  get isOver(): boolean {
    return this.#isIdle && !this.lease && !this.#asked && this.unhanded === 0n
  }

  get #isIdle(): boolean {
    return this.#deps.clock.now() - this.#usedAt >= IDLE_MS
  }

  get #isEnding(): boolean {
    return this.#isIdle || this.#deps.closing
  }

  get #isPoor(): boolean {
    return this.snapshot.limited === true && this.#policy.lastAmount > this.snapshot.poorBeyond
  }

  /** What is to be added in the background. */
  get #lacks(): bigint {
    if (!this.snapshot.limited || this.#isPoor || this.#isEnding) return 0n
    return this.#policy.lacks(this.#lease?.granted ?? 0n)
  }

  /** What nobody here needs. */
  get #spare(): bigint {
    if (!this.#lease) return 0n
    if (this.snapshot.limited === false || this.#isPoor || this.#isEnding) return this.#lease.free
    return this.#policy.spare(this.#lease)
  }

  #cameBack(): void {
    this.admissions.serveSoon()
    if (this.#lease && (this.#deps.closing || this.#isPoor)) this.#deps.ask(this)
  }

  #takeForWaiting(): LeaseChange['change'] | undefined {
    const { now, wall } = momentOf(this.#deps.clock)
    const amounts = this.admissions.amountsFor(this)
    if (this.#deps.closing || this.covers(sumOf(amounts), now, wall)) return undefined
    const holding = this.#lease ?? { free: 0n, granted: 0n }
    return this.#policy.takeFor(amounts, holding, this.snapshot.availableAt(now), this.#isPoor)
  }

  /** Before calls need it; also to be told how a wallet stands that was used since. */
  #takeAhead(): LeaseChange['change'] | undefined {
    if (this.#deps.closing) return undefined
    const want = this.#lacks
    const isOld = this.snapshot.isOld(this.#deps.clock.now(), this.#usedAt)
    return want > 0n || isOld ? { kind: 'take', need: 0n, want } : undefined
  }

  #give(): LeaseChange['change'] | undefined {
    const { lease } = this
    if (!lease || (!this.#deps.closing && this.admissions.amountsFor(this).length > 0)) return undefined
    const amount = this.#spare
    if (amount > 0n) return { kind: 'give', amount }
    // One that calls have used up is open still: giving nothing back closes it.
    const isOver = lease.empty && lease.reserved === 0n && this.#isEnding
    return isOver ? { kind: 'give', amount: 0n } : undefined
  }
}

function sumOf(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

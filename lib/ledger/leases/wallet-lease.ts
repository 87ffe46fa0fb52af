import type { Draw, LeaseAnswer, LeaseChange } from '../ledger.ts'
import { type Moment, momentOf } from '../pool/clock.ts'
import type { WalletId } from '../wallet.ts'
import { HeldLease } from './held-lease.ts'
import { least } from './lease-demand.ts'
import { LeaseSizing } from './lease-sizing.ts'
import { LeaseWishes, type Standing } from './lease-wishes.ts'
import type { Waiting, WalletSurroundings } from './wallet-surroundings.ts'
import { WalletView } from './wallet-view.ts'

/** Part of a charge that a lease pays. */
export interface HeldDraw extends Draw {
  readonly from: WalletLease
  readonly held: HeldLease
}

/** What is not used for that long goes back, and is forgotten, in milliseconds. */
const IDLE_MS = 10_000
/** Where others could take less than that many calls such as the last, nothing is kept that is not needed now. */
const POOR_CALLS = 10n

/** One wallet as this process sees it: what it knows of it, and the lease that it has on it. */
export class WalletLease {
  readonly wallet: WalletId
  readonly waiting: Waiting<WalletLease>
  /** What the ledger told of it. */
  readonly view: WalletView
  /** Charges that were not handed to the ledger yet: surely not part of what it says is spent. */
  unhanded = 0n
  readonly #around: WalletSurroundings<WalletLease>
  readonly #sizing: LeaseSizing
  readonly #wishes: LeaseWishes
  #lease: HeldLease | undefined
  #usedAt: number
  #asked: { change: LeaseChange; lease: HeldLease; at: Moment } | undefined
  /** Where less than this is free, more is asked for in the background. */
  #low = 0n

  constructor(wallet: WalletId, waiting: Waiting<WalletLease>, around: WalletSurroundings<WalletLease>) {
    this.wallet = wallet
    this.waiting = waiting
    this.view = new WalletView(around.clock)
    this.#around = around
    this.#usedAt = around.clock.now()
    this.#sizing = new LeaseSizing(this.#usedAt)
    this.#wishes = new LeaseWishes(this.view, this.#sizing)
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
  covers(amount: bigint): boolean {
    if (amount === 0n) return true
    if (this.view.limited === false) return this.view.isBelieved
    const lease = this.#lease
    return lease !== undefined && lease.free >= amount && lease.isUsable(this.#around.clock)
  }

  /** Holds what {@link covers} has found; undefined where nothing need be held. */
  hold(amount: bigint): HeldLease | undefined {
    const lease = this.#lease
    this.#usedAt = this.#around.clock.now()
    if (!lease || this.view.limited === false || lease.free < amount) return undefined
    lease.reserved += amount
    const { free } = lease
    this.#sizing.admitted(amount, lease.reserved, free)
    if (free < this.#low) {
      this.#low = free / 2n
      this.#around.ask(this)
    }
    return lease
  }

  /** A call of {@link hold} used nothing. */
  release(lease: HeldLease | undefined, amount: bigint): void {
    if (!lease) return
    lease.reserved -= amount
    this.#cameBack()
  }

  /**
   * A call of {@link hold} costs that much. What was held for it pays, and what is free beside it.
   *
   * @returns what the lease pays; the rest is for the wallet itself.
   */
  draw(lease: HeldLease | undefined, amount: bigint, cost: bigint): HeldDraw | undefined {
    this.#sizing.spend(cost)
    if (lease) lease.reserved -= amount
    const held = lease ?? this.#lease
    // What is free in a lease that is gone is not there.
    const drawn = held ? least(cost, held.lost ? amount : held.free) : 0n
    this.#cameBack()
    if (!held || drawn === 0n) return undefined
    held.granted -= drawn
    held.drawing += drawn
    if (held.lost) this.#around.figures.overruns++
    return { lease: held.id, wallet: this.wallet, amount: drawn, from: this, held }
  }

  /**
   * What was drawn is known to have been taken, or not.
   *
   * @param returned whether it is in the lease still.
   */
  drawn({ held, amount }: HeldDraw, returned: boolean): void {
    held.drawing -= amount
    if (returned) held.granted += amount
    // A call that ends behind the closing has perhaps emptied the lease, which is then to be closed.
    if (returned || this.#around.isClosing()) this.#cameBack()
  }

  /** It is gone, or nobody knows what it holds: the next call opens another. It ends by itself, or is swept. */
  drop(lease: HeldLease): void {
    if (lease.lost) return
    lease.lost = true
    this.#around.figures.lost++
    if (this.#lease === lease) this.#lease = undefined
  }

  /** What the ledger is to be asked for now: what it has not answered yet, or something new, or nothing. */
  nextChange(): LeaseChange | undefined {
    if (this.#asked) return this.#asked.change
    const change = this.#takeForWaiting() ?? this.#give() ?? this.#takeAhead()
    if (!change) return undefined
    this.#lease ??= new HeldLease(this.#around.newLeaseId())
    const lease = this.#lease
    if (change.kind === 'give') {
      lease.granted -= change.amount
      this.#sizing.restart()
    }
    lease.seq++
    const at = momentOf(this.#around.clock)
    this.#asked = { change: { lease: lease.id, wallet: this.wallet, seq: lease.seq, change }, lease, at }
    return this.#asked.change
  }

  /** What the ledger answered to {@link nextChange}. */
  answered({ moved, lost, open, state }: LeaseAnswer): void {
    if (!this.#asked) return
    const { change, lease, at } = this.#asked
    this.#asked = undefined
    this.view.told(state, at.now)
    if (lost) this.drop(lease)
    else if (change.change.kind === 'take') this.#taken(lease, moved, change.change.need)
    else if (!open && this.#lease === lease) this.#lease = undefined
    lease.confirm(at)
    this.#low = ((this.#lease?.free ?? 0n) - this.#waitedFor) / 2n
  }

  /** What calls could get of it, as of the last answer; undefined where it is not limited. */
  get reach(): bigint | undefined {
    return this.view.limited ? (this.#lease?.free ?? 0n) + this.view.available : undefined
  }

  /** About once a second: what grows, shrinks, is old or idle is seen to. */
  tick(): void {
    const lease = this.#lease
    this.#sizing.tick(this.#around.clock.now(), lease?.reserved ?? 0n, lease?.free ?? 0n)
    if (this.#asked) return
    const [wishes, standing] = [this.#wishes, this.#standing]
    const idle = this.#isIdle && this.lease !== undefined
    const moves = idle || wishes.lacks(standing) > 0n || wishes.spare(standing) > 0n
    if (moves || this.view.isOld(this.#usedAt)) this.#around.ask(this)
  }

  /** Whether it can be forgotten. */
  get isOver(): boolean {
    return this.#isIdle && !this.lease && !this.#asked && this.unhanded === 0n
  }

  #taken(lease: HeldLease, moved: bigint, need: bigint): void {
    lease.granted += moved
    // It was not opened: the first change can be asked for again.
    if (moved === 0n && lease.seq === 1) lease.seq = 0
    this.#wishes.taken(moved, need)
  }

  get #isIdle(): boolean {
    return this.#around.clock.now() - this.#usedAt >= IDLE_MS
  }

  get #isPoor(): boolean {
    return this.view.limited === true && this.view.available < this.#sizing.lastAmount * POOR_CALLS
  }

  get #standing(): Standing {
    const isEnding = this.#isIdle || this.#around.isClosing()
    return { lease: this.#lease, isPoor: this.#isPoor, isEnding }
  }

  /** What all that wait for it can cost. */
  get #waitedFor(): bigint {
    return this.waiting.amountsFor(this).reduce((sum, amount) => sum + amount, 0n)
  }

  #cameBack(): void {
    this.waiting.serveSoon()
    if (this.#lease && (this.#isPoor || this.#around.isClosing())) this.#around.ask(this)
  }

  #takeForWaiting(): LeaseChange['change'] | undefined {
    if (this.#around.isClosing() || this.covers(this.#waitedFor)) return undefined
    return this.#wishes.takeFor(this.waiting.amountsFor(this), this.#standing)
  }

  #takeAhead(): LeaseChange['change'] | undefined {
    return this.#around.isClosing() ? undefined : this.#wishes.takeAhead(this.#standing, this.#usedAt)
  }

  #give(): LeaseChange['change'] | undefined {
    const { lease } = this
    if (!lease || (!this.#around.isClosing() && this.waiting.amountsFor(this).length > 0)) return undefined
    return this.#wishes.give(this.#standing)
  }
}

import type { Logger } from '../../core/call/index.ts'
import { MAX_AMOUNT } from '../../core/catalog/money.ts'
import type { Draw, LeaseAnswer, LeaseChange, WalletState } from '../ledger.ts'
import { keyWallet, NO_FUNDS, type WalletId } from '../wallet.ts'
import { type Clock, type Moment, momentOf } from './clock.ts'
import { HeldLease } from './held-lease.ts'
import { TopUpPolicy } from './top-up-policy.ts'

/**
 * How long a report that a wallet is not limited may be used, in milliseconds; a wallet in use is asked about sooner.
 */
const TRUST_UNLIMITED_MS = 4900
const ASK_AGAIN_MS = 3000
/** How long the available amount may be used to decide how much to ask for, in milliseconds. */
const AVAILABLE_MS = 1000
/** If others could take less than this many calls like the last, only what is needed now is held. */
const POOR_CALLS = 10n

/** The last report of the ledger about a wallet. */
export class WalletSnapshot {
  /** Whether the wallet limits spending; undefined before the first report. */
  limited: boolean | undefined
  /** The amount that is neither leased nor spent; of a wallet without a limit, what 64 bits hold beside what is spent. */
  available = 0n
  /** The amount that would be available if all leases were returned. */
  balance = 0n
  /** A call that can cost more than this leaves others too little. */
  poorBeyond = 0n
  /** When the ledger was asked; its report is at least this recent. */
  #askedAt = Number.NEGATIVE_INFINITY

  update({ limited, funds, spent, leased }: WalletState, askedAt: number): void {
    const available = limited ? funds - spent - leased : MAX_AMOUNT - spent
    this.limited = limited
    this.available = available > 0n ? available : 0n
    this.balance = funds - spent
    this.poorBeyond = this.available / POOR_CALLS
    this.#askedAt = askedAt
  }

  /** Whether the wallet is known to be unlimited. */
  isUnlimited(now: number): boolean {
    return this.limited === false && now - this.#askedAt < TRUST_UNLIMITED_MS
  }

  /** Whether the last report, however old, showed that nothing could be spent. */
  isEmpty(unhanded: bigint): boolean {
    return this.limited === true && this.balance <= unhanded
  }

  /** Returns the amount that others leave; undefined if the report is too old. */
  availableAt(now: number): bigint | undefined {
    return this.limited && now - this.#askedAt < AVAILABLE_MS ? this.available : undefined
  }

  /** Whether calls use a report that should be refreshed. */
  isOld(now: number, usedAt: number): boolean {
    return now - this.#askedAt > ASK_AGAIN_MS && usedAt > this.#askedAt
  }
}

/** The part of a charge that a lease pays. */
export interface HeldDraw extends Draw {
  readonly from: WalletLease
  readonly held: HeldLease
}

/** The calls that wait for money of a wallet. */
export interface Admissions {
  /** Returns their amounts, in the order in which they are served. */
  amountsFor(wallet: WalletLease): readonly bigint[]
  /** Serves waiting calls soon, because something was returned. */
  serveSoon(): void
  /** Admits and refuses calls, because the ledger has reported these wallets. */
  serve(reported: readonly WalletLease[]): void
}

/** The parts of a pool that a wallet needs. */
export interface WalletDeps {
  readonly clock: Clock
  readonly logger: Logger
  /** Counters of the pool for metrics: lost leases, and charges on them. */
  readonly figures: { lost: number; overruns: number }
  /** Whether everything is to be given back. */
  readonly closing: boolean
  /** Makes sure that the wallet's next change is sent to the ledger. */
  ask(wallet: WalletLease): void
  newLeaseId(): string
}

const UNKNOWN_ACCOUNT =
  'the ledger does not know this account, so its calls are refused with insufficient_balance: give it to the ledger, such as new MemoryLedger({ accounts: [{ id }] }); with unknownAccounts: "postpaid" a MemoryLedger serves every account'

/** A lease that was not used for this long is given back and forgotten, in milliseconds. */
const IDLE_MS = 10_000

/** A wallet as this process sees it: the last report of the ledger, and the process's lease on the wallet. */
export class WalletLease {
  /** The id of the account or key. */
  readonly id: string
  readonly wallet: WalletId
  readonly admissions: Admissions
  /** The last report of the ledger. */
  readonly snapshot = new WalletSnapshot()
  /** Charges that the ledger has not been handed, so that its report of the spending cannot include them. */
  unhanded = 0n
  readonly #deps: WalletDeps
  readonly #policy: TopUpPolicy
  #lease: HeldLease | undefined
  #usedAt: number
  #asked: { change: LeaseChange; lease: HeldLease; at: Moment } | undefined
  /** If less than this is free, more is asked for in the background. */
  #low = 0n

  constructor(id: string, wallet: WalletId, admissions: Admissions, deps: WalletDeps) {
    this.id = id
    this.wallet = wallet
    this.admissions = admissions
    this.#deps = deps
    this.#usedAt = deps.clock.now()
    this.#policy = new TopUpPolicy(this.#usedAt)
  }

  /** The lease on which calls are admitted, once the ledger was asked for it. */
  get lease(): HeldLease | undefined {
    return this.#lease?.seq ? this.#lease : undefined
  }

  /** Whether a change has been sent to the ledger and not been answered. */
  get isAsking(): boolean {
    return this.#asked !== undefined
  }

  /** Whether a call with this cost can be admitted at once. */
  covers(amount: bigint, now: number, wall: number): boolean {
    if (amount === 0n) return true
    if (this.snapshot.limited === false)
      return this.snapshot.isUnlimited(now) && amount <= this.snapshot.available
    const lease = this.#lease
    return lease !== undefined && lease.free >= amount && lease.isUsable(now, wall)
  }

  /** Holds an amount that {@link covers} accepted; returns undefined if nothing has to be held. */
  hold(amount: bigint, now: number): HeldLease | undefined {
    const lease = this.#lease
    this.#usedAt = now
    if (!lease || this.snapshot.limited === false || lease.free < amount) return undefined
    const free = lease.free - amount
    lease.free = free
    lease.reserved += amount
    this.#policy.admitted(amount, lease.reserved, free)
    if (free < this.#low) {
      this.#low = free / 2n
      this.#deps.ask(this)
    }
    return lease
  }

  /** Releases an amount that {@link hold} held. */
  release(lease: HeldLease | undefined, amount: bigint): void {
    if (!lease) return
    lease.reserved -= amount
    lease.free += amount
    this.#cameBack()
  }

  /**
   * Draws the cost of a call whose amount {@link hold} held. The held amount pays, then the free amount of the lease;
   * the rest is debited from the wallet.
   *
   * @returns the part that the lease pays; undefined if it pays nothing.
   */
  draw(lease: HeldLease | undefined, amount: bigint, cost: bigint): HeldDraw | undefined {
    this.#policy.spent += cost
    // Without a limit there is no lease that shows the cost until the next report.
    if (this.snapshot.limited === false) this.snapshot.available -= cost
    const held = lease ?? this.#lease
    let drawn = 0n
    if (held) {
      const free = lease ? held.free + amount : held.free
      // A lost lease has no free amount.
      const most = held.lost ? amount : free
      drawn = cost < most ? cost : most
      held.free = free - drawn
      if (lease) lease.reserved -= amount
    }
    this.#cameBack()
    if (!held || drawn === 0n) return undefined
    held.drawing++
    if (held.lost) this.#deps.figures.overruns++
    return { lease: held.id, wallet: this.wallet, amount: drawn, from: this, held }
  }

  /** Records that a drawn amount was taken by the ledger or, if `returned`, is still in the lease. */
  drawn({ held, amount }: HeldDraw, returned: boolean): void {
    held.drawing--
    if (returned) held.free += amount
    // A call that ends after the close may have emptied the lease, which must be closed then.
    if (returned || this.#deps.closing) this.#cameBack()
  }

  /** Gives up a lease that is lost, or whose amount is unknown. It ends by itself or is swept. */
  drop(lease: HeldLease): void {
    if (lease.lost) return
    lease.lost = true
    this.#deps.figures.lost++
    if (this.#lease === lease) this.#lease = undefined
  }

  /** Returns the next change for the ledger: the one without an answer, or a new one, or undefined. */
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

  /** Applies the ledger's answer to {@link nextChange}. */
  answered({ moved, lost, open, state }: LeaseAnswer): void {
    if (!this.#asked) return
    const { change, lease, at } = this.#asked
    this.#asked = undefined
    if (!state && !this.#isOfKey && this.snapshot.limited === undefined)
      this.#deps.logger.warn({ wallet: this.wallet }, UNKNOWN_ACCOUNT)
    this.snapshot.update(state ?? { ...NO_FUNDS, limited: !this.#isOfKey }, at.now)
    if (lost) this.drop(lease)
    else if (change.change.kind === 'take') {
      lease.free += moved
      // The lease was not opened: its first change may be asked for again.
      if (moved === 0n && lease.seq === 1) lease.seq = 0
      this.#policy.taken(moved, change.change.need)
    } else if (!open && this.#lease === lease) this.#lease = undefined
    lease.confirm(at)
    this.#low = ((this.#lease?.free ?? 0n) - sumOf(this.admissions.amountsFor(this))) / 2n
  }

  /** The most that calls could get of the wallet, as of the last answer; undefined before the first. */
  get reach(): bigint | undefined {
    const { limited, available } = this.snapshot
    return limited ? (this.#lease?.free ?? 0n) + available : limited === false ? available : undefined
  }

  /** Checks, about once a second, whether a change is due: growing, shrinking, refreshing or closing. */
  tick(): void {
    const lease = this.#lease
    const now = this.#deps.clock.now()
    this.#policy.tick(now, lease?.reserved ?? 0n, lease?.free ?? 0n)
    if (this.#asked) return
    const needsChange = (this.#isIdle && this.lease !== undefined) || this.#missing > 0n || this.#surplus > 0n
    if (needsChange || this.snapshot.isOld(now, this.#usedAt)) this.#deps.ask(this)
  }

  /** Whether the wallet can be forgotten. */
  get isOver(): boolean {
    return this.#isIdle && !this.lease && !this.#asked && this.unhanded === 0n
  }

  get #isOfKey(): boolean {
    return this.wallet === keyWallet(this.id)
  }

  get #isIdle(): boolean {
    return this.#deps.clock.now() - this.#usedAt >= IDLE_MS
  }

  get #isEnding(): boolean {
    return this.#isIdle || this.#deps.closing
  }

  get #isScarce(): boolean {
    return this.snapshot.limited === true && this.#policy.lastAmount > this.snapshot.poorBeyond
  }

  /** The amount to add in the background. */
  get #missing(): bigint {
    if (!this.snapshot.limited || this.#isScarce || this.#isEnding) return 0n
    return this.#policy.missing(this.#lease?.granted ?? 0n)
  }

  /** The amount that this process does not need. */
  get #surplus(): bigint {
    if (!this.#lease) return 0n
    if (this.snapshot.limited === false || this.#isScarce || this.#isEnding) return this.#lease.free
    return this.#policy.surplus(this.#lease)
  }

  #cameBack(): void {
    this.admissions.serveSoon()
    if (this.#lease && (this.#deps.closing || this.#isScarce)) this.#deps.ask(this)
  }

  #takeForWaiting(): LeaseChange['change'] | undefined {
    const { now, wall } = momentOf(this.#deps.clock)
    const amounts = this.admissions.amountsFor(this)
    if (this.#deps.closing || this.covers(sumOf(amounts), now, wall)) return undefined
    const holding = this.#lease ?? { free: 0n, granted: 0n }
    return this.#policy.takeFor(amounts, holding, this.snapshot.availableAt(now), this.#isScarce)
  }

  /** Takes more before calls need it, or asks for a fresh report of a wallet in use. */
  #takeAhead(): LeaseChange['change'] | undefined {
    if (this.#deps.closing) return undefined
    const want = this.#missing
    const isOld = this.snapshot.isOld(this.#deps.clock.now(), this.#usedAt)
    return want > 0n || isOld ? { kind: 'take', need: 0n, want } : undefined
  }

  #give(): LeaseChange['change'] | undefined {
    const { lease } = this
    if (!lease || (!this.#deps.closing && this.admissions.amountsFor(this).length > 0)) return undefined
    const amount = this.#surplus
    if (amount > 0n) return { kind: 'give', amount }
    // A lease that calls have used up is still open: a `give` of nothing closes it.
    return lease.empty && this.#isEnding ? { kind: 'give', amount: 0n } : undefined
  }
}

function sumOf(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

import type { Awaited, Deadlines } from '../settling/deadlines.ts'
import { accountWallet, keyWallet } from '../wallet.ts'
import type { LedgerHealth } from './ledger-health.ts'
import { Reservation, type ReservationDeps, type ReserveRefusal } from './reservation.ts'
import { type Admissions, type WalletDeps, WalletLease } from './wallet-lease.ts'

/** A call that waits for money. */
export interface Waiter extends Awaited<Waiter> {
  readonly key: WalletLease | undefined
  readonly amount: bigint
  readonly answer: (answer: Reservation | ReserveRefusal) => void
  /** Whether the call has been admitted or refused. */
  done: boolean
}

/** The parts of a pool that its queues share. */
export interface PoolDeps extends WalletDeps, ReservationDeps {
  readonly health: LedgerHealth
  readonly admissions: Deadlines<Waiter>
}

/** Admits the calls of one account, on its wallet and on those of its keys. */
export class AdmissionQueue implements Admissions {
  readonly account: WalletLease
  readonly #deps: PoolDeps
  readonly #keys = new Map<string, WalletLease>()
  /** By key, in the order in which keys have their turn. */
  #waiters = new Map<WalletLease | undefined, Waiter[]>()
  #serving = false

  constructor(accountId: string, deps: PoolDeps) {
    this.#deps = deps
    this.account = new WalletLease(accountId, accountWallet(accountId), this, deps)
  }

  /** Holds `amount` on both wallets or on none. */
  reserve(
    keyId: string | null,
    amount: bigint,
  ): Reservation | ReserveRefusal | Promise<Reservation | ReserveRefusal> {
    const key = keyId === null ? undefined : (this.#keys.get(keyId) ?? this.#addKey(keyId))
    const held = this.#hold(key, amount)
    if (held) return held
    return this.#deps.health.mayAsk() ? this.#wait(key, amount) : unavailable(amount)
  }

  /** Whether nothing could be spent when the ledger last told of the account and the key; undefined if it has not. */
  seemsEmpty(keyId: string | null): boolean | undefined {
    const wallets = keyId === null ? [this.account] : [this.#keys.get(keyId), this.account]
    if (wallets.some((wallet) => wallet?.snapshot.isEmpty(wallet.unhanded))) return true
    return wallets.every((wallet) => wallet?.snapshot.limited !== undefined) ? false : undefined
  }

  amountsFor(wallet: WalletLease): readonly bigint[] {
    if (this.#waiters.size === 0) return []
    const turns = wallet === this.account ? this.#inTurn() : (this.#waiters.get(wallet) ?? [])
    return turns.filter(({ done }) => !done).map(({ amount }) => amount)
  }

  serveSoon(): void {
    if (this.#waiters.size === 0 || this.#serving) return
    this.#serving = true
    setImmediate(() => {
      this.#serving = false
      this.serve([])
    })
  }

  /**
   * Admits waiting calls if their money can be held, and refuses those for which it cannot become available.
   *
   * @param told the wallets that the ledger has just reported. Calls that their funds cannot cover are refused without
   *   asking again.
   */
  serve(told: readonly WalletLease[]): void {
    if (this.#waiters.size === 0) return
    const waiting = this.#inTurn().filter((waiter) => !this.#admit(waiter))
    const reach = new Map(told.map((wallet) => [wallet, wallet.reach]))
    for (const waiter of waiting) if (!this.#canBeServed(waiter, reach)) this.#refuse(waiter, reach)
    this.#keepWaiting()
    for (const { key, amount, done } of waiting) if (!done) this.#askFor(key, amount)
  }

  /** Refuses all waiting calls, because the pool closes. */
  refuseAll(): void {
    for (const waiter of this.#inTurn()) this.#answer(waiter, unavailable(waiter.amount))
    this.#waiters.clear()
  }

  /** Returns all known wallets of the account. */
  *wallets(): Iterable<WalletLease> {
    yield this.account
    yield* this.#keys.values()
  }

  /**
   * Runs about once a second.
   *
   * @returns whether the queue must be kept.
   */
  tick(): boolean {
    if (this.#waiters.size > 0) this.#keepWaiting()
    const waited = this.#waiters.size > 0
    for (const [id, wallet] of this.#keys) {
      wallet.tick()
      if (wallet.isOver && !waited) this.#keys.delete(id)
    }
    this.account.tick()
    return waited || this.#keys.size > 0 || !this.account.isOver
  }

  #addKey(keyId: string): WalletLease {
    const key = new WalletLease(keyId, keyWallet(keyId), this, this.#deps)
    this.#keys.set(keyId, key)
    return key
  }

  /** Holds an amount; returns undefined if one of the wallets does not cover it. */
  #hold(key: WalletLease | undefined, amount: bigint): Reservation | undefined {
    const { clock } = this.#deps
    const now = clock.now()
    const wall = clock.wall()
    if (key && !key.covers(amount, now, wall)) return undefined
    if (!this.account.covers(amount, now, wall)) return undefined
    return new Reservation(amount, this.account, key, now, this.#deps)
  }

  #wait(key: WalletLease | undefined, amount: bigint): Promise<Reservation | ReserveRefusal> {
    return new Promise((answer) => {
      const waiter: Waiter = { key, amount, answer, done: false, deadline: undefined }
      const queue = this.#waiters.get(key)
      if (queue) queue.push(waiter)
      else this.#waiters.set(key, [waiter])
      this.#deps.admissions.add(waiter)
      this.#askFor(key, amount)
    })
  }

  #askFor(key: WalletLease | undefined, amount: bigint): void {
    if (key && !this.#covers(key, amount)) this.#deps.ask(key)
    if (!this.#covers(this.account, amount)) this.#deps.ask(this.account)
  }

  #covers(wallet: WalletLease, amount: bigint): boolean {
    const { clock } = this.#deps
    return wallet.covers(amount, clock.now(), clock.wall())
  }

  /** Returns one waiting call of each key, then the next of each key. */
  #inTurn(): Waiter[] {
    const queues = [...this.#waiters.values()]
    const longest = queues.reduce((most, { length }) => Math.max(most, length), 0)
    const turns: Waiter[] = []
    for (let turn = 0; turn < longest; turn++) {
      for (const queue of queues) {
        const waiter = queue[turn]
        if (waiter && !waiter.done) turns.push(waiter)
      }
    }
    return turns
  }

  #admit(waiter: Waiter): boolean {
    const held = this.#hold(waiter.key, waiter.amount)
    if (!held) return false
    this.#answer(waiter, held)
    return true
  }

  #canBeServed({ key, amount }: Waiter, reach: Map<WalletLease, bigint | undefined>): boolean {
    const wallets = key ? [key, this.account] : [this.account]
    if (wallets.some((wallet) => amount > (reach.get(wallet) ?? amount))) return false
    for (const wallet of wallets) {
      const left = reach.get(wallet)
      if (left !== undefined) reach.set(wallet, left - amount)
    }
    return true
  }

  /**
   * Refuses a call unless its money may become available. The key is checked before the account. Money that others hold
   * may be returned; money that is spent is not.
   */
  #refuse(waiter: Waiter, reach: Map<WalletLease, bigint | undefined>): void {
    const { key, amount } = waiter
    const left = (wallet: WalletLease | undefined) => {
      if (!wallet?.snapshot.limited || this.#covers(wallet, amount)) return undefined
      return wallet.snapshot.balance - wallet.unhanded
    }
    const [ofKey, ofAccount] = [left(key), left(this.account)]
    const refusal = (refused: ReserveRefusal['refused'], available: bigint | null) =>
      this.#answer(waiter, { refused, required: amount, available })
    if (ofKey !== undefined && amount > ofKey) refusal('key_quota_exhausted', ofKey)
    else if (ofAccount !== undefined && amount > ofAccount) refusal('insufficient_balance', ofAccount)
    else refusal('quota_lease_exhausted', (key && reach.get(key)) ?? reach.get(this.account) ?? null)
  }

  #answer(waiter: Waiter, answer: Reservation | ReserveRefusal): void {
    waiter.done = true
    this.#deps.admissions.delete(waiter)
    waiter.answer(answer)
  }

  /** Keeps the waiting calls in their order, and moves the key that had its turn first to the end. */
  #keepWaiting(): void {
    const [first, ...others] = this.#waiters
    const left = first ? [...others, first] : []
    this.#waiters = new Map()
    for (const [key, queue] of left) {
      const waiting = queue.filter(({ done }) => !done)
      if (waiting.length > 0) this.#waiters.set(key, waiting)
    }
  }
}

/** Returns the refusal of a call while it is unknown whether there is money. */
export function unavailable(required: bigint): ReserveRefusal {
  return { refused: 'billing_unavailable', required, available: null }
}

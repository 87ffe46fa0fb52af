import type { BudgetPeriod } from '../budgets/budget.ts'
import { type Payer, payersOf } from '../payers.ts'
import type { Deadlines, WithDeadline } from '../settling/deadlines.ts'
import { accountWallet, keyWallet, type WalletId } from '../wallet.ts'
import type { LedgerHealth } from './ledger-health.ts'
import { type BudgetLease, Reservation, type ReservationDeps, type ReserveRefusal } from './reservation.ts'
import { type Admissions, type WalletDeps, WalletLease } from './wallet-lease.ts'

/** A call that waits for money. */
export interface Waiter extends WithDeadline<Waiter> {
  readonly key: WalletLease | undefined
  readonly budgets: readonly BudgetLease[]
  readonly amount: bigint
  readonly answer: (answer: Reservation | ReserveRefusal) => void
  /** Whether the call has been admitted or refused. */
  done: boolean
}

const NO_PERIODS: readonly BudgetPeriod[] = []
const NO_BUDGETS: readonly BudgetLease[] = []

/** The parts of a pool that its queues share. */
export interface PoolDeps extends WalletDeps, ReservationDeps {
  readonly health: LedgerHealth
  readonly admissions: Deadlines<Waiter>
}

/** Admits the calls of one account, on its wallet and on those of its keys and budgets. */
export class AdmissionQueue implements Admissions {
  readonly account: WalletLease
  readonly #deps: PoolDeps
  readonly #keys = new Map<string, WalletLease>()
  readonly #budgets = new Map<WalletId, BudgetLease>()
  /** By key, in the order in which keys have their turn. */
  #waiters = new Map<WalletLease | undefined, Waiter[]>()
  #serving = false

  constructor(accountId: string, deps: PoolDeps) {
    this.#deps = deps
    this.account = new WalletLease(accountId, accountWallet(accountId), this, deps)
  }

  /** Holds `amount` on all wallets or on none. */
  reserve(
    keyId: string | null,
    amount: bigint,
    periods: readonly BudgetPeriod[] = NO_PERIODS,
  ): Reservation | ReserveRefusal | Promise<Reservation | ReserveRefusal> {
    const key = keyId === null ? undefined : (this.#keys.get(keyId) ?? this.#addKey(keyId))
    const budgets = periods.length === 0 ? NO_BUDGETS : periods.map((period) => this.#budgetOf(period))
    const held = this.#hold(key, budgets, amount)
    if (held) return held
    return this.#deps.health.mayAsk() ? this.#wait({ key, budgets, amount }) : unavailable(amount)
  }

  /** Whether the ledger's last report of the account and these wallets left nothing to spend; undefined without one. */
  seemsEmpty(keyId: string | null, periods = NO_PERIODS): boolean | undefined {
    const wallets = [this.account, ...periods.map(({ wallet }) => this.#budgets.get(wallet)?.lease)]
    if (keyId !== null) wallets.push(this.#keys.get(keyId))
    if (wallets.some((wallet) => wallet?.snapshot.isEmpty(wallet.unhanded))) return true
    return wallets.every((wallet) => wallet?.snapshot.limited !== undefined) ? false : undefined
  }

  amountsFor(wallet: WalletLease): readonly bigint[] {
    if (this.#waiters.size === 0) return []
    const turns =
      wallet === this.account
        ? this.#roundRobin()
        : this.#budgets.has(wallet.wallet)
          ? this.#roundRobin().filter(({ budgets }) => budgets.some(({ lease }) => lease === wallet))
          : (this.#waiters.get(wallet) ?? [])
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
   * @param reported the wallets that the ledger has just reported. Calls that their funds cannot cover are refused without
   *   asking again.
   */
  serve(reported: readonly WalletLease[]): void {
    if (this.#waiters.size === 0) return
    const waiting = this.#roundRobin().filter((waiter) => !this.#admit(waiter))
    const reach = new Map(reported.map((wallet) => [wallet, wallet.reach]))
    for (const waiter of waiting) if (!this.#canBeServed(waiter, reach)) this.#refuse(waiter, reach)
    this.#keepWaiting()
    for (const waiter of waiting) if (!waiter.done) this.#askFor(waiter)
  }

  /** Refuses all waiting calls, because the pool closes. */
  refuseAll(): void {
    for (const waiter of this.#roundRobin()) this.#answer(waiter, unavailable(waiter.amount))
    this.#waiters.clear()
  }

  *wallets(): Iterable<WalletLease> {
    yield this.account
    yield* this.#keys.values()
    for (const { lease } of this.#budgets.values()) yield lease
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
    for (const [id, { lease }] of this.#budgets) {
      lease.tick()
      if (lease.isOver && !waited) this.#budgets.delete(id)
    }
    this.account.tick()
    return waited || this.#keys.size > 0 || this.#budgets.size > 0 || !this.account.isOver
  }

  #addKey(keyId: string): WalletLease {
    const key = new WalletLease(keyId, keyWallet(keyId), this, this.#deps)
    this.#keys.set(keyId, key)
    return key
  }

  #budgetOf(period: BudgetPeriod): BudgetLease {
    const known = this.#budgets.get(period.wallet)
    if (known) return known
    const budget = { period, lease: new WalletLease(period.budget, period.wallet, this, this.#deps) }
    this.#budgets.set(period.wallet, budget)
    return budget
  }

  /** Holds an amount; returns undefined if one of the wallets does not cover it. */
  #hold(
    key: WalletLease | undefined,
    budgets: readonly BudgetLease[],
    amount: bigint,
  ): Reservation | undefined {
    const { clock } = this.#deps
    const now = clock.now()
    const wall = clock.wall()
    if (key && !key.covers(amount, now, wall)) return undefined
    if (!this.account.covers(amount, now, wall)) return undefined
    for (let i = 0; i < budgets.length; i++)
      if (!(budgets[i] as BudgetLease).lease.covers(amount, now, wall)) return undefined
    return new Reservation(amount, this.account, key, budgets, now, this.#deps)
  }

  #wait(asked: Pick<Waiter, 'key' | 'budgets' | 'amount'>): Promise<Reservation | ReserveRefusal> {
    const { key } = asked
    return new Promise((answer) => {
      const waiter: Waiter = { ...asked, answer, done: false, deadline: undefined }
      const queue = this.#waiters.get(key)
      if (queue) queue.push(waiter)
      else this.#waiters.set(key, [waiter])
      this.#deps.admissions.add(waiter)
      this.#askFor(waiter)
    })
  }

  #askFor(waiter: Waiter): void {
    for (const wallet of this.#walletsOf(waiter))
      if (!this.#covers(wallet, waiter.amount)) this.#deps.ask(wallet)
  }

  #walletsOf({ key, budgets }: Pick<Waiter, 'key' | 'budgets'>): WalletLease[] {
    const wallets = key ? [key, this.account] : [this.account]
    for (const { lease } of budgets) wallets.push(lease)
    return wallets
  }

  #covers(wallet: WalletLease, amount: bigint): boolean {
    const { clock } = this.#deps
    return wallet.covers(amount, clock.now(), clock.wall())
  }

  /** Returns one waiting call of each key, then the next of each key. */
  #roundRobin(): Waiter[] {
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
    const held = this.#hold(waiter.key, waiter.budgets, waiter.amount)
    if (!held) return false
    this.#answer(waiter, held)
    return true
  }

  #canBeServed(waiter: Waiter, reach: Map<WalletLease, bigint | undefined>): boolean {
    const { amount } = waiter
    const wallets = this.#walletsOf(waiter)
    if (wallets.some((wallet) => amount > (reach.get(wallet) ?? amount))) return false
    for (const wallet of wallets) {
      const left = reach.get(wallet)
      if (left !== undefined) reach.set(wallet, left - amount)
    }
    return true
  }

  #refuse(waiter: Waiter, reach: Map<WalletLease, bigint | undefined>): void {
    const { key, budgets, amount } = waiter
    const held = budgets.map(({ period, lease }) => ({ budget: period, wallet: lease }))
    const lacking = payersOf(this.account, key ?? null, held).filter(
      ({ wallet: { reach = amount, snapshot }, wallet }) =>
        snapshot.limited ? !this.#covers(wallet, amount) : amount > reach,
    )
    this.#answer(
      waiter,
      refusalOf(lacking, amount, (wallet) => reach.get(wallet ?? this.account)),
    )
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

/**
 * Returns the refusal of a call whose money cannot become available. What is spent does not come back; what others hold
 * may.
 *
 * @param lacking the wallets that do not cover it.
 * @param reachOf returns the most that calls could get of a wallet; of the account if none is given.
 */
function refusalOf(
  lacking: readonly Payer<WalletLease>[],
  required: bigint,
  reachOf: (wallet: WalletLease | undefined) => bigint | undefined,
): ReserveRefusal {
  for (const { wallet, ...refusal } of lacking) {
    const available = wallet.snapshot.balance - wallet.unhanded
    if (required > available) return { ...refusal, required, available }
  }
  const [first] = lacking
  return {
    refused: 'quota_lease_exhausted',
    required,
    available: reachOf(first?.wallet) ?? null,
    ...(first?.budget && { budget: first.budget }),
  }
}

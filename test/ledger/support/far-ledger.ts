import {
  type LeaseAnswer,
  type LeaseChange,
  type Ledger,
  MemoryLedger,
  type OpenLease,
  type Settlement,
  type SettlementResult,
  WalletsLocked,
} from '../../../lib/ledger/index.ts'
import { accountWallet } from '../../../lib/ledger/wallet.ts'
import type { VirtualClock } from './virtual-clock.ts'

export const ROUND_TRIP_MS = 100
/** How long a settlement waits for a lock, as Postgres does. */
const LOCK_MS = 150

interface UnderWay {
  readonly accounts: ReadonlySet<string>
}

/**
 * A ledger that is half a round trip away in each direction. Rows of accounts may be locked: a settlement waits for them, and
 * then fails as one of Postgres does, or never gets an answer.
 */
export class FarLedger implements Ledger {
  readonly settlesRecords = false
  readonly gathers = true
  settlesAtOnce = 5
  roundTripMs = ROUND_TRIP_MS
  readonly books: MemoryLedger
  readonly #clock: VirtualClock
  /** Until when each is locked. `forever`: whoever waits gets no answer. */
  readonly locked = new Map<string, 'timed' | 'forever'>()
  /** Settlements of these requests fail, and what is settled with them. */
  readonly poison = new Set<string>()
  /** Whether nothing arrives. */
  isCut = false
  /** How many of the next answers are lost. */
  lost = 0
  /** Each settlement that is under way. */
  readonly underWay = new Set<UnderWay>()
  mostUnderWay = 0
  /** The most settlements under way at a time that an account was in. */
  mostOfOne = 0
  /** The kinds of what was applied, by request id, in order. */
  readonly applied = new Map<string, string[]>()
  #unlocked: (() => void)[] = []

  constructor(accounts: readonly string[], clock: VirtualClock) {
    this.books = new MemoryLedger({ accounts: accounts.map((id) => ({ id, balance: '1000' })) })
    this.#clock = clock
  }

  unlock(account: string): void {
    this.locked.delete(account)
    for (const go of this.#unlocked.splice(0)) go()
  }

  change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    return this.#far(async () => this.books.change(owner, changes))
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    return this.#far(async () => this.books.renew(leases, at))
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#far(async () => this.books.leases())
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#far(async () => this.books.sweep(lease, beats))
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    // The same object is used again as a void.
    const handed = settlements.map(copyOf)
    const flight = { accounts: new Set(handed.map(({ account }) => account)) }
    this.underWay.add(flight)
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay.size)
    for (const account of flight.accounts) {
      const of = [...this.underWay].filter(({ accounts }) => accounts.has(account))
      this.mostOfOne = Math.max(this.mostOfOne, of.length)
    }
    try {
      return await this.#far(() => this.#settle(handed))
    } finally {
      this.underWay.delete(flight)
    }
  }

  async #settle(settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    const locked = () => settlements.filter(({ account }) => this.locked.has(account))
    for (let since = this.#clock.now(); locked().length > 0; ) {
      const isForever = locked().some(({ account }) => this.locked.get(account) === 'forever')
      const left = LOCK_MS - (this.#clock.now() - since)
      if (isForever) await new Promise<void>((resolve) => this.#unlocked.push(resolve))
      else if (left > 0) await this.#unlockedWithin(left)
      else {
        // It asks who that is.
        await this.#pass(this.roundTripMs)
        const wallets = new Set(locked().map(({ account }) => accountWallet(account)))
        if (wallets.size > 0) throw new WalletsLocked(wallets)
        since = this.#clock.now()
      }
    }
    if (settlements.some(({ requestId }) => this.poison.has(requestId))) throw new Error('out of range')
    for (const { requestId, kind } of settlements)
      this.applied.set(requestId, [...(this.applied.get(requestId) ?? []), kind])
    return this.books.settle(settlements)
  }

  /** Waits for a lock. */
  #unlockedWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#unlocked.push(resolve)
      this.#clock.after(ms, resolve)
    })
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve))
  }

  async #far<T>(run: () => Promise<T>): Promise<T> {
    await this.#pass(this.roundTripMs / 2)
    if (this.isCut) throw new Error('the connection was lost')
    const answer = await run()
    await this.#pass(this.roundTripMs / 2)
    if (this.isCut) throw new Error('the connection was lost')
    if (this.lost > 0) {
      this.lost--
      throw new Error('the answer was lost')
    }
    return answer
  }
}

function copyOf({
  kind,
  requestId,
  account,
  key,
  amount,
  at,
  basis,
  draws,
  claim,
  entry,
}: Settlement): Settlement {
  return { kind, requestId, account, key, amount, at, basis, draws, claim, entry }
}

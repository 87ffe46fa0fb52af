import { randomUUID } from 'node:crypto'
import type { Logger } from '../../core/call/index.ts'
import { Polling, StoreAway } from '../../core/store-guard/index.ts'
import type { WalletId } from '../wallet.ts'
import type { HomeExchange, ShareOrder } from './home-exchange.ts'
import type { HomeStore, Mirrors, Share, ShareStore } from './region-store.ts'
import { ShareTarget } from './share-target.ts'

/** The parts that {@link RegionRounds} works with. */
export interface RegionRoundsOptions {
  readonly exchange: HomeExchange
  readonly home: HomeStore
  readonly shares: ShareStore
  readonly mirrors: Mirrors
  readonly logger: Logger
  /** How long copies of keys are used without an answer of their home, in milliseconds. */
  readonly maxAwayMs: number
}

const ROUND_MS = 1000
/**
 * If the process that looks after a home dies, another one does after this long, in milliseconds; longer than a round takes with
 * a home that is about to go away: who takes over learns anew what shares are needed.
 */
const CLAIM_MS = 10_000
/** Shares that nobody has used for this long rest, in milliseconds; longer than what {@link ShareTarget} takes to return them. */
const REST_MS = 60_000
/** A call may end, or its process die, when its share rests. */
const WAKE_EVERY_MS = 60_000

/**
 * Looks after what a region has of one home, about once a second: reports what was spent, asks for more before a share is used
 * up, returns what is not needed, and keeps the copies of accounts and keys as they are at home. Of the processes of a region
 * one does so; two at once would do no harm.
 */
export class RegionRounds {
  readonly #options: RegionRoundsOptions
  readonly #owner = randomUUID()
  readonly #targets = new Map<WalletId, ShareTarget>()
  readonly #polling: Polling
  #failure: string | undefined
  #wokenAt = Number.NEGATIVE_INFINITY

  constructor(options: RegionRoundsOptions) {
    this.#options = options
    this.#polling = new Polling(() => this.#round(), ROUND_MS)
  }

  /** Runs a round now. Never rejects. */
  now(): Promise<void> {
    return this.#polling.now()
  }

  async close(): Promise<void> {
    this.#polling.close()
    await this.#polling.now().catch(() => {})
  }

  async #round(): Promise<void> {
    const { exchange, shares, logger } = this.#options
    try {
      const at = Date.now()
      const until = this.#polling.closed ? at : at + CLAIM_MS
      const contactAt = await shares.claim(exchange.name, this.#owner, at, until)
      await (contactAt === undefined ? this.#see() : this.#lookAfter(contactAt))
      this.#failure = undefined
    } catch (error) {
      // Its own database is away, which others tell.
      const failure = String((error as Error)?.message)
      if (failure !== this.#failure)
        logger.warn({ err: error, home: exchange.name }, 'a round of a region failed')
      this.#failure = failure
    }
  }

  /** Finds out whether the home answers. */
  async #see(): Promise<void> {
    const { exchange, home } = this.#options
    this.#targets.clear()
    await exchange.ask(() => home.ping()).catch(() => {})
  }

  async #lookAfter(contactAt: number): Promise<void> {
    const { exchange, home, shares, mirrors, maxAwayMs } = this.#options
    const { name } = exchange
    const inUse = await shares.inUse(name)
    const now = performance.now()
    const orders = inUse.flatMap((share) => this.#orderOf(share, now))
    try {
      const ask = <T>(question: () => Promise<T>) => exchange.ask(question)
      // What is returned has left its share before home is asked: not while home is away.
      await ask(() => home.ping())
      const compared = mirrors.refresh(name, ask).then(() => shares.noteContact(name, Date.now()))
      await Promise.all([exchange.exchange(orders), compared])
    } catch (error) {
      if (!(error instanceof StoreAway)) throw error
      // The guard of the exchange has told.
      if (Date.now() - contactAt > maxAwayMs) await mirrors.expire(name)
      return
    }
    await this.#rest(inUse, now)
    if (now - this.#wokenAt < WAKE_EVERY_MS) return
    await shares.wake(name)
    this.#wokenAt = now
  }

  #orderOf(share: Share, now: number): ShareOrder[] {
    const { wallet } = share
    const target = this.#targets.get(wallet) ?? new ShareTarget(share, now)
    this.#targets.set(wallet, target)
    const { want, give } = target.next(share, now)
    return want > 0n || give > 0n || !share.isTold ? [{ wallet, need: 0n, want, give }] : []
  }

  async #rest(inUse: readonly Share[], now: number): Promise<void> {
    const before = Date.now() - REST_MS
    const idle = inUse.filter(
      ({ wallet, isTold, usedAt }) => isTold && usedAt < before && this.#targets.get(wallet)?.isIdle(now),
    )
    for (const { wallet } of idle) this.#targets.delete(wallet)
    await this.#options.shares.rest(
      idle.map(({ wallet }) => wallet),
      before,
    )
  }
}

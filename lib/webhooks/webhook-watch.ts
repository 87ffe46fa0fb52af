import { type Logger, quietLogger } from '../core/call/index.ts'
import { formatAmount } from '../core/catalog/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
  someMilliseconds,
} from '../core/options/index.ts'
import { boundedStore } from '../core/store-guard/index.ts'
import { LineWatch, type WatchedLine } from './line-watch.ts'
import { MAX_CLOCK_SKEW_MS, type WebhookOutbox } from './outbox.ts'
import type { WatchedBalance, WatchSource } from './watch-source.ts'
import { newEvent } from './webhook-event.ts'

/** Options of {@link WebhookWatch}. Times are milliseconds. */
export interface WebhookWatchOptions {
  /** Where events are recorded. */
  outbox: WebhookOutbox
  /** Returns the lines as this process sees them. Defaults to none. */
  lines?: () => readonly WatchedLine[]
  /** Looks up balances and keys. Defaults to nothing: neither is announced. */
  source?: WatchSource
  /** How often lines are looked at. Defaults to 1000. */
  roundMs?: number
  /** Logs that events cannot be recorded. Defaults to the console. */
  logger?: Logger
  /** Returns the time since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

const RULES: OptionRules<WebhookWatchOptions> = {
  outbox: required(anObjectWith('an outbox, such as new MemoryWebhooks()', 'announce')),
  lines: aFunction('a function that returns lines, each with its id and whether it is down'),
  source: anObjectWith('an object that looks up balances and keys', 'balances', 'endingKeys'),
  roundMs: someMilliseconds,
  logger: aLogger,
  now: aFunction('a function that returns milliseconds since the epoch'),
}

const BALANCES_EVERY_MS = 10_000
const KEYS_EVERY_MS = 60_000
/** Overlaps, so that no spending falls between two looks. */
const BALANCES_SINCE_MS = 120_000
const KEYS_AT_A_TIME = 100
const DAY_MS = 86_400_000
const KEY_NOTICE_MS = 7 * DAY_MS
/** Accounts announced in one round; the next round, not the next check, goes on. */
const BALANCES_AT_A_TIME = 100
const MAX_OUTAGES = 100

/**
 * Watches what no transaction records: lines, the ledger, balances and keys. Each process runs one. What several see
 * is announced once.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const watch = new WebhookWatch({ outbox, lines: () => lines.map(({ id }) => ({ id, down: isDown(id) })) })
 * const pool = new LeasePool({ ledger, onAwayChange: (away) => watch.noteLedger(away) })
 * // at shutdown
 * await watch.close()
 */
export class WebhookWatch {
  readonly #outbox: WebhookOutbox
  readonly #source: WatchSource | undefined
  readonly #lines: LineWatch
  readonly #logger: Logger
  readonly #now: () => number
  readonly #outages: { readonly from: number; readonly until: number }[] = []
  #awaySince: number | undefined
  readonly #timer: NodeJS.Timeout
  #round: Promise<void> | undefined
  #failing = false
  /** When this process asks again whether it is its turn: each asking is a write to a row that all processes share. */
  readonly #askedAgainAt = { balances: 0, keys: 0 }
  /** Since when balances are checked, until all are announced. */
  #balancesSince: number | undefined
  #closed = false

  constructor(options: WebhookWatchOptions) {
    checkOptions('WebhookWatch', options, RULES)
    const { lines = () => [], roundMs = 1000, now = Date.now, source } = options
    this.#outbox = boundedStore('webhooks', options.outbox)
    this.#source = source && boundedStore('balances and keys', source)
    this.#lines = new LineWatch(this.#outbox, lines)
    this.#logger = quietLogger(options.logger)
    this.#now = now
    this.#timer = setInterval(() => {
      this.#round ??= this.#check().finally(() => {
        this.#round = undefined
      })
    }, roundMs).unref()
  }

  /** Notes that the ledger went away, or is back: then, it is announced. */
  noteLedger(away: boolean): void {
    const now = this.#now()
    if (away) this.#awaySince = now
    else if (this.#awaySince !== undefined) {
      if (this.#outages.length < MAX_OUTAGES) this.#outages.push({ from: this.#awaySince, until: now })
      this.#awaySince = undefined
    }
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#round
  }

  async #check(): Promise<void> {
    try {
      await this.#announceOutages()
      if (!this.#closed) await this.#lines.check(this.#now())
      if (this.#source && !this.#closed) await this.#lookUp(this.#source)
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#logger.warn({ err: error }, 'events for webhooks cannot be recorded')
      this.#failing = true
    }
  }

  async #announceOutages(): Promise<void> {
    for (const { from, until } of [...this.#outages]) {
      const data = { from: new Date(from).toISOString(), until: new Date(until).toISOString() }
      const event = newEvent({ type: 'ledger.away', subject: 'ledger', at: until, data })
      // Its state is the end of the last outage that was announced: another process has announced the same one. One that seems
      // to end much later was announced before the clock was set back.
      await this.#outbox.announce('ledger', until, (last) => {
        const end = Number(last?.state ?? Number.NEGATIVE_INFINITY)
        return end >= from && end <= until + MAX_CLOCK_SKEW_MS ? undefined : { state: String(until), event }
      })
      this.#outages.shift()
    }
  }

  async #lookUp(source: WatchSource): Promise<void> {
    const now = this.#now()
    if (await this.#claimTurn('balances', now, BALANCES_EVERY_MS))
      this.#balancesSince ??= now - BALANCES_SINCE_MS
    if (this.#balancesSince !== undefined) {
      const balances = await source.balances(this.#balancesSince, BALANCES_AT_A_TIME)
      for (const balance of balances) if (!this.#closed) await this.#announceBalance(balance, now)
      if (balances.length < BALANCES_AT_A_TIME) this.#balancesSince = undefined
    }
    if (!this.#closed && (await this.#claimTurn('keys', now, KEYS_EVERY_MS)))
      await this.#announceKeys(source, now)
  }

  /** Whether it is this process's turn. While it is another's, asks twice in that time: the other may have ended. */
  async #claimTurn(name: 'balances' | 'keys', now: number, everyMs: number): Promise<boolean> {
    const waitMs = this.#askedAgainAt[name] - now
    // One that seems longer than any was noted before the clock was set back.
    if (waitMs > 0 && waitMs <= everyMs) return false
    const isOurs = await this.#outbox.claimTurn(name, now, everyMs)
    this.#askedAgainAt[name] = now + (isOurs ? everyMs : everyMs / 2)
    return isOurs
  }

  async #announceBalance({ account, balance, threshold }: WatchedBalance, at: number): Promise<void> {
    const state = balance < threshold ? 'low' : 'enough'
    const subject = `account:${account}`
    const data = { account, balance: formatAmount(balance), threshold: formatAmount(threshold) }
    await this.#outbox.announce(subject, at, (last) => {
      if ((last?.state ?? 'enough') === state) return undefined
      return state === 'enough'
        ? { state }
        : { state, event: newEvent({ type: 'balance.low', subject, at, data }) }
    })
  }

  async #announceKeys(source: WatchSource, at: number): Promise<void> {
    for (const { key, account, expiresAt } of await source.endingKeys(
      at,
      at + KEY_NOTICE_MS,
      KEYS_AT_A_TIME,
    )) {
      if (this.#closed) return
      const subject = `key:${key}`
      const data = { key, account, expires_at: new Date(expiresAt).toISOString() }
      const state = String(expiresAt)
      await this.#outbox.announce(subject, at, (last) =>
        last?.state === state
          ? undefined
          : { state, event: newEvent({ type: 'key.expiring', subject, at, data }) },
      )
    }
  }
}

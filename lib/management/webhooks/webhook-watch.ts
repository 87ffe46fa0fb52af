import { type Logger, quietLogger } from '../../core/call/index.ts'
import { formatAmount } from '../../core/catalog/index.ts'
import {
  aFunction,
  aLogger,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
  someMilliseconds,
} from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { BackgroundLoop } from '../../core/timing/index.ts'
import { MAX_CLOCK_SKEW_MS, type WebhookOutbox } from './outbox.ts'
import { newEvent } from './webhook-event.ts'

/** A line as a process sees it. */
export interface WatchedLine {
  readonly id: string
  /** Whether no call succeeds on it: the `availability` of a `LineRegistry` is `down`. */
  readonly down: boolean
}

/** The money of a prepaid account, in nano-units. */
export interface WatchedBalance {
  readonly account: string
  readonly balance: bigint
  /** Below this, it is low: a tenth of the last sum that was paid in, or 0. */
  readonly threshold: bigint
}

/** A key that ends soon. */
export interface EndingKey {
  readonly key: string
  readonly account: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The look-ups of {@link WebhookWatch}. */
export interface WatchSource {
  /**
   * Returns accounts that are low and were not announced as low, or were and no longer are: of those whose balance may
   * have changed since a time, and in turns of all that were announced as low.
   */
  balances(since: number, limit: number): Promise<readonly WatchedBalance[]>

  /** Returns keys that end between two times, the first to end first, except those that were announced. */
  endingKeys(from: number, until: number, limit: number): Promise<readonly EndingKey[]>
}

/** Options of {@link WebhookWatch}. Times are milliseconds. */
export interface WebhookWatchOptions {
  /** Where events are recorded. */
  outbox: WebhookOutbox
  /** Returns the lines as this process sees them. Defaults to none. */
  lines?: () => readonly WatchedLine[]
  /** Looks up balances and keys. Defaults to nothing: neither is announced. */
  source?: WatchSource
  /** How often lines are looked at. Defaults to 1000. */
  pollMs?: number
  /** Logs that events cannot be recorded. Defaults to the console. */
  logger?: Logger
  /** Returns the time since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

const RULES: OptionRules<WebhookWatchOptions> = {
  outbox: required(anObjectWith('an outbox, such as new SqlWebhookOutbox(db)', 'announce')),
  lines: aFunction('a function that returns lines, each with its id and whether it is down'),
  source: anObjectWith('an object that looks up balances and keys', 'balances', 'endingKeys'),
  pollMs: someMilliseconds,
  logger: aLogger,
  now: aFunction('a function that returns milliseconds since the epoch'),
}

const BALANCES_EVERY_MS = 10_000
const KEYS_EVERY_MS = 60_000
/** The ranges overlap, so that no spending falls between two checks. */
const BALANCES_SINCE_MS = 120_000
const KEYS_AT_A_TIME = 100
const DAY_MS = 86_400_000
const KEY_NOTICE_MS = 7 * DAY_MS
/** Accounts announced in one round; the next round, not the next check, goes on. */
const BALANCES_AT_A_TIME = 100
const MAX_OUTAGES = 100

/**
 * Watches lines, the ledger, balances and keys, which no transaction records. Each process runs one. An event that several
 * processes see is announced once.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const watch = new WebhookWatch({ outbox, lines: () => lines.map(({ id }) => ({ id, down: isDown(id) })) })
 * const pool = new LeasePool({ ledger, onStoreChange: (away) => watch.noteLedger(away) })
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
  readonly #checking: BackgroundLoop
  #failing = false
  /** When this process asks again whether it is its turn: each asking is a write to a row that all processes share. */
  readonly #askedAgainAt = { balances: 0, keys: 0 }
  /** Since when balances are checked, until all are announced. */
  #balancesSince: number | undefined

  constructor(options: WebhookWatchOptions) {
    checkOptions('WebhookWatch', options, RULES)
    const { lines = () => [], pollMs = 1000, now = Date.now, source } = options
    this.#outbox = boundedStore('webhooks', options.outbox)
    this.#source = source && boundedStore('balances and keys', source)
    this.#lines = new LineWatch(this.#outbox, lines)
    this.#logger = quietLogger(options.logger)
    this.#now = now
    this.#checking = new BackgroundLoop(() => this.#check(), pollMs)
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
    await this.#checking.close()
  }

  async #check(): Promise<void> {
    try {
      await this.#announceOutages()
      if (!this.#checking.closed) await this.#lines.check(this.#now())
      if (this.#source && !this.#checking.closed) await this.#lookUp(this.#source)
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
      for (const balance of balances) if (!this.#checking.closed) await this.#announceBalance(balance, now)
      if (balances.length < BALANCES_AT_A_TIME) this.#balancesSince = undefined
    }
    if (!this.#checking.closed && (await this.#claimTurn('keys', now, KEYS_EVERY_MS)))
      await this.#announceKeys(source, now)
  }

  /** Whether it is this process's turn. While it is another's, asks twice in that time: the other may have ended. */
  async #claimTurn(name: 'balances' | 'keys', now: number, everyMs: number): Promise<boolean> {
    const waitMs = this.#askedAgainAt[name] - now
    // A longer wait was noted before the clock was set back.
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
      if (this.#checking.closed) return
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

/** How often a process that sees a line down announces it again. */
const CONFIRM_EVERY_MS = 20_000
/** A line that no process has reported down for this long is up: the process that saw it down has ended. */
const FORGOTTEN_AFTER_MS = 60_000

/**
 * Announces which lines go down and come up. Each process sees only its own calls: a line is down once the first process sees
 * it down, and up once the first of those that saw it down no longer does.
 */
class LineWatch {
  readonly #outbox: WebhookOutbox
  readonly #lines: () => readonly WatchedLine[]
  /** The lines that this process sees down, and when it announced each last. */
  readonly #down = new Map<string, number>()
  #confirmedAt = Number.NEGATIVE_INFINITY

  constructor(outbox: WebhookOutbox, lines: () => readonly WatchedLine[]) {
    this.#outbox = outbox
    this.#lines = lines
  }

  async check(now: number): Promise<void> {
    const lines = this.#lines()
    for (const { id, down } of lines) {
      const announcedAt = this.#down.get(id)
      if (down && announcedAt === undefined) await this.#announceDown(id, now)
      else if (down && Math.abs(now - Number(announcedAt)) >= CONFIRM_EVERY_MS) await this.#confirm(id, now)
      else if (!down && announcedAt !== undefined) {
        await this.#announceUp(id, now, () => true)
        this.#down.delete(id)
      }
    }
    // A line that was removed from the config starts afresh if it comes back.
    for (const id of this.#down.keys()) if (!lines.some((line) => line.id === id)) this.#down.delete(id)
    if (Math.abs(now - this.#confirmedAt) >= CONFIRM_EVERY_MS) await this.#announceForgotten(lines, now)
  }

  async #announceDown(id: string, at: number): Promise<void> {
    const subject = subjectOf(id)
    const event = newEvent({ type: 'line.down', subject, at, data: { line: id } })
    await this.#outbox.announce(subject, at, (last) =>
      last?.state === 'down' ? { state: 'down' } : { state: 'down', event },
    )
    this.#down.set(id, at)
  }

  async #confirm(id: string, at: number): Promise<void> {
    await this.#outbox.announce(subjectOf(id), at, (last) =>
      last?.state === 'down' ? { state: 'down' } : undefined,
    )
    this.#down.set(id, at)
  }

  /** @param isOver returns whether the line, which was last announced as down at this time, no longer is. */
  async #announceUp(id: string, at: number, isOver: (announcedAt: number) => boolean): Promise<void> {
    const subject = subjectOf(id)
    const event = newEvent({ type: 'line.up', subject, at, data: { line: id } })
    await this.#outbox.announce(subject, at, (last) =>
      last?.state === 'down' && isOver(last.at) ? { state: 'up', event } : undefined,
    )
  }

  async #announceForgotten(lines: readonly WatchedLine[], now: number): Promise<void> {
    const isForgotten = (at: number): boolean =>
      at <= now - FORGOTTEN_AFTER_MS || at > now + MAX_CLOCK_SKEW_MS
    for (const [subject, { at }] of await this.#outbox.announced('down')) {
      const line = lines.find(({ id }) => subjectOf(id) === subject)
      if (!isForgotten(at) || line?.down) continue
      if (line) await this.#announceUp(line.id, now, isForgotten)
      // The config no longer has it.
      else
        await this.#outbox.announce(subject, now, (last) =>
          last?.state === 'down' ? { state: 'gone' } : undefined,
        )
    }
    this.#confirmedAt = now
  }
}

function subjectOf(line: string): string {
  return `line:${line}`
}

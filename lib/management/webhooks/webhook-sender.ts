import { randomUUID } from 'node:crypto'
import { type Logger, quietLogger } from '../../core/call/index.ts'
import {
  aFunction,
  aKeepTime,
  aLogger,
  anObjectWith,
  aString,
  aWholeNumber,
  checkOptions,
  type OptionRules,
  oneOf,
  required,
  someMilliseconds,
} from '../../core/options/index.ts'
import { boundedStore, Outage } from '../../core/store-guard/index.ts'
import { BackgroundLoop } from '../../core/timing/index.ts'
import { type AttemptEnd, type ClaimedDelivery, MAX_CLOCK_SKEW_MS, type WebhookOutbox } from './outbox.ts'
import { type Answer, messageOf, WebhookRequests } from './webhook-request.ts'

/** Options of {@link WebhookSender}. Times are milliseconds. */
export interface WebhookSenderOptions {
  /** The outbox. Each process that shares it may run a sender: only one of them attempts a delivery at a time. */
  outbox: WebhookOutbox
  /** Whether webhooks may have private addresses, and `http:` ones. Defaults to false. */
  allowPrivate?: boolean
  /** The address of the console, for links in messages to Slack. Defaults to none: they have no link. */
  consoleUrl?: string
  /** How long a receiver may take to answer, at most five minutes. Defaults to 10000. */
  timeoutMs?: number
  /** How often the outbox is asked for new events and due deliveries. Defaults to 1000. */
  pollMs?: number
  /** How long deliveries are kept. Defaults to 30 days. */
  keepDeliveriesMs?: number
  /** The name of this process. Defaults to a random one. */
  owner?: string
  /** Logs dropped and given up deliveries, and outages of the outbox. Defaults to the console. */
  logger?: Logger
  /** Returns the time since the epoch. Defaults to `Date.now`. */
  now?: () => number
}

/** An outbox takes a claim that lasts much longer for one from before the clock was set back. */
const MAX_TIMEOUT_MS = 300_000

const RULES: OptionRules<WebhookSenderOptions> = {
  outbox: required(anObjectWith('an outbox, such as new SqlWebhookOutbox(db)', 'claim')),
  allowPrivate: oneOf(true, false),
  consoleUrl: aString(),
  timeoutMs: aWholeNumber(
    `a positive whole number of milliseconds, at most ${MAX_TIMEOUT_MS} (5 minutes)`,
    1,
    MAX_TIMEOUT_MS,
  ),
  pollMs: someMilliseconds,
  keepDeliveriesMs: aKeepTime,
  owner: aString(),
  logger: aLogger,
  now: aFunction('a function that returns milliseconds since the epoch'),
}

/** The time that a claim lasts beyond an attempt, to note its end. */
const CLAIM_SPARE_MS = 20_000
/** How long running attempts may take when the process ends. */
const CLOSE_WITHIN_MS = 2000
const PRUNE_EVERY_MS = 60_000
const OLDEST_EVERY_MS = 10_000
const PRUNED_ROWS = 1000

/**
 * Delivers the events of an outbox. All state is in the outbox: after a restart the sender continues.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const sender = new WebhookSender({ outbox })
 * // at shutdown
 * await sender.close()
 */
export class WebhookSender {
  readonly #settings: Required<Omit<WebhookSenderOptions, 'consoleUrl'>>
  readonly #consoleUrl: string | undefined
  readonly #outbox: WebhookOutbox
  readonly #logger: Logger
  readonly #outage: Outage
  readonly #requests: WebhookRequests
  readonly #slots = new WebhookSlots()
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #rounds: BackgroundLoop
  #prunedAt = Number.NEGATIVE_INFINITY
  #oldestReadAt = Number.NEGATIVE_INFINITY
  #oldestAt: number | null = null
  readonly #outcomes = { delivered: 0, failed: 0, given_up: 0, dropped: 0 }

  constructor(options: WebhookSenderOptions) {
    checkOptions('WebhookSender', options, RULES)
    this.#settings = {
      allowPrivate: false,
      timeoutMs: 10_000,
      pollMs: 1000,
      keepDeliveriesMs: 30 * 86_400_000,
      owner: randomUUID(),
      now: Date.now,
      ...options,
      logger: quietLogger(options.logger),
    }
    this.#consoleUrl = options.consoleUrl?.replace(/\/$/, '')
    this.#outbox = boundedStore('webhooks', options.outbox)
    this.#logger = this.#settings.logger
    this.#outage = new Outage({ store: 'webhooks', effect: 'events come later', logger: this.#logger })
    this.#requests = new WebhookRequests(this.#settings)
    this.#rounds = new BackgroundLoop(() => this.#runRound(), this.#settings.pollMs)
  }

  /** Lets running attempts end, for two seconds; breaks off the others, which another process makes. Never rejects. */
  async close(): Promise<void> {
    await this.#rounds.close()
    const late = setTimeout(() => this.#closing.abort(), CLOSE_WITHIN_MS)
    await Promise.all(this.#running)
    clearTimeout(late)
    await this.#requests.close()
  }

  /** How the attempts of this process ended, and how long the oldest event of all processes has waited, in milliseconds. */
  get stats() {
    const waitingMs = this.#oldestAt === null ? 0 : Math.max(0, this.#settings.now() - this.#oldestAt)
    return { outcomes: { ...this.#outcomes }, waitingMs }
  }

  async #runRound(): Promise<void> {
    try {
      await this.#startDue()
      this.#outage.ends()
    } catch (error) {
      this.#outage.begins(error)
    }
  }

  /** Starts all deliveries that are due and have a slot. */
  async #startDue(): Promise<void> {
    const { now, timeoutMs } = this.#settings
    await this.#createAll()
    if (Math.abs(now() - this.#oldestReadAt) >= OLDEST_EVERY_MS) {
      this.#oldestAt = await this.#outbox.oldestWaiting()
      this.#oldestReadAt = now()
    }
    for (const webhook of await this.#outbox.due(now())) {
      const limit = this.#slots.freeFor(webhook)
      if (limit === 0 || this.#rounds.closed) continue
      const at = now()
      // Each claim has a name of its own: an attempt that is late must not end what was claimed since.
      const owner = `${this.#settings.owner}:${randomUUID()}`
      const claim = { webhook, owner, now: at, until: at + timeoutMs + CLAIM_SPARE_MS, limit }
      for (const delivery of await this.#outbox.claim(claim)) this.#start(delivery, owner)
    }
    await this.#prune(now())
  }

  /** Makes the deliveries of all new events: one that counts may be behind many others. */
  async #createAll(): Promise<void> {
    while (!this.#rounds.closed) {
      const { events, dropped } = await this.#outbox.createDeliveries(this.#settings.now())
      for (const [webhook, deliveries] of dropped) {
        this.#outcomes.dropped += deliveries
        this.#logger.warn(
          { webhook, deliveries },
          'too many deliveries wait for a webhook: the oldest of the account or line with the most were dropped',
        )
      }
      if (events === 0) return
    }
  }

  async #prune(now: number): Promise<void> {
    if (Math.abs(now - this.#prunedAt) < PRUNE_EVERY_MS) return
    const pruned = await this.#outbox.prune(now - this.#settings.keepDeliveriesMs, PRUNED_ROWS)
    if (pruned < PRUNED_ROWS) this.#prunedAt = now
  }

  #start(delivery: ClaimedDelivery, owner: string): void {
    const release = this.#slots.take(delivery.webhook)
    const attempt = this.#attempt(delivery, owner)
      .then(release, (error: unknown) => {
        // The delivery is due again when its claim ends.
        release(false)
        this.#logger.error(
          { err: error, webhook: delivery.webhook },
          'the end of a delivery could not be noted',
        )
      })
      .finally(() => {
        this.#running.delete(attempt)
        void this.#rounds.wake()
      })
    this.#running.add(attempt)
  }

  /** Returns whether the event was delivered. */
  async #attempt(delivery: ClaimedDelivery, owner: string): Promise<boolean> {
    const { now } = this.#settings
    const message = messageOf(delivery, { now: now(), consoleUrl: this.#consoleUrl })
    const answer = await this.#requests.send(delivery.url, message, this.#closing.signal)
    const end = this.#endOf(delivery, answer)
    await this.#outbox.finish(delivery.id, owner, end, now())
    this.#note(delivery, end)
    return end.kind === 'delivered'
  }

  #endOf({ attempts, event }: ClaimedDelivery, answer: Answer): AttemptEnd {
    const { status } = answer
    if (status === null) {
      if (this.#closing.signal.aborted) return { kind: 'handed_back' }
    } else {
      if (status >= 200 && status < 300) return { kind: 'delivered', status }
      if (status === 410) return { kind: 'gone', status }
    }
    const error = answer.status === null ? answer.error : `answered ${answer.status}`
    return { kind: 'failed', status, error, nextAt: nextAttemptAt(attempts, event.at, this.#settings.now()) }
  }

  #note({ webhook, event, attempts }: ClaimedDelivery, end: AttemptEnd): void {
    if (end.kind === 'delivered') this.#outcomes.delivered++
    else if (end.kind === 'failed' && end.nextAt !== null) this.#outcomes.failed++
    else if (end.kind !== 'handed_back') this.#outcomes.given_up++
    if (end.kind === 'gone') this.#logger.warn({ webhook }, 'a webhook answered 410: it is disabled')
    else if (end.kind === 'failed' && end.nextAt === null)
      this.#logger.warn(
        { webhook, event: event.id, type: event.type, attempts, error: end.error },
        'an event could not be delivered for a day: it is given up',
      )
  }
}

const FIRST_WAIT_MS = 5000
const MAX_WAIT_MS = 60 * 60_000
/** The share by which a wait is longer or shorter by chance. */
const JITTER = 0.2
/** No attempt is planned further ahead, whichever process plans it. */
export const LONGEST_WAIT_MS = MAX_WAIT_MS * (1 + JITTER) + MAX_CLOCK_SKEW_MS
/** How long an event is worth another attempt. */
const RETRY_FOR_MS = 24 * 60 * 60_000

/**
 * Returns when to try again: after 5 s, 10 s, 20 s and so on up to an hour, each a fifth longer or shorter by chance, for a
 * day after the event; then null.
 */
export function nextAttemptAt(attempts: number, eventAt: number, now: number): number | null {
  if (now - eventAt >= RETRY_FOR_MS) return null
  const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1))
  return now + Math.round(wait * (1 - JITTER + 2 * JITTER * Math.random()))
}

/** Deliveries under way to one webhook, and to all. */
const MAX_OF_ONE = 4
const MAX_OF_ALL = 64

interface Load {
  running: number
  failing: boolean
}

/**
 * Shares out the deliveries that a process has under way. A webhook whose last delivery failed has one at a time. Every
 * webhook may have one, however many others hang: there are at most 50.
 */
class WebhookSlots {
  readonly #loads = new Map<string, Load>()
  #running = 0

  freeFor(webhook: string): number {
    const { running, failing } = this.#loads.get(webhook) ?? { running: 0, failing: false }
    if (running === 0) return failing ? 1 : Math.max(1, Math.min(MAX_OF_ONE, MAX_OF_ALL - this.#running))
    return failing ? 0 : Math.max(0, Math.min(MAX_OF_ONE - running, MAX_OF_ALL - this.#running))
  }

  /** Takes a slot; returns the function that gives it back, whose argument is whether the delivery succeeded. */
  take(webhook: string): (delivered: boolean) => void {
    const load = this.#loads.get(webhook) ?? { running: 0, failing: false }
    this.#loads.set(webhook, load)
    load.running++
    this.#running++
    return (delivered) => {
      load.running--
      this.#running--
      load.failing = !delivered
      if (load.running === 0 && delivered) this.#loads.delete(webhook)
    }
  }
}

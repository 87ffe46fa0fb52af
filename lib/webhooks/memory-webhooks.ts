import { aChangeLog, type ChangeOrigin, MemoryChangeLog } from '../core/change-log/index.ts'
import { checkOptions } from '../core/options/index.ts'
import {
  type AnnouncedState,
  type Announcement,
  type AttemptEnd,
  type ClaimedDelivery,
  type CreatedDeliveries,
  type DeliveryClaim,
  DROPPED_ERROR,
  GONE_ERROR,
  LASTING_STATES,
  MAX_WAITING,
  type WebhookOutbox,
} from './outbox.ts'
import { LONGEST_WAIT_MS } from './retries.ts'
import {
  type Delivery,
  type DeliveryQuery,
  MAX_WEBHOOKS,
  type NewWebhook,
  type Webhook,
  type WebhookStore,
  webhookChange,
} from './webhook.ts'
import type { WebhookEvent } from './webhook-event.ts'

/** Options of {@link MemoryWebhooks}. */
export interface MemoryWebhooksOptions {
  /** The log of changes. Defaults to a new one. */
  changes?: MemoryChangeLog
}

interface KnownWebhook extends Omit<Webhook, 'id'> {
  readonly secret: string
  readonly oldSecret?: { readonly secret: string; readonly until: number }
}

interface KnownDelivery extends Omit<Delivery, 'id' | 'event' | 'type' | 'subject'> {
  readonly webhook: string
  readonly event: WebhookEvent
  readonly owner: string | null
}

/**
 * Webhooks, events and deliveries in this process's memory, which end with the process.
 *
 * @example
 * const webhooks = new MemoryWebhooks()
 * const sender = new WebhookSender({ outbox: webhooks })
 */
export class MemoryWebhooks implements WebhookStore, WebhookOutbox {
  readonly #changes: MemoryChangeLog
  readonly #webhooks = new Map<string, KnownWebhook>()
  /** The ids of recorded events, and when they were; then those without deliveries. */
  readonly #recorded = new Map<string, number>()
  #new: WebhookEvent[] = []
  /** In the order of their numbers. */
  readonly #deliveries = new Map<number, KnownDelivery>()
  readonly #states = new Map<string, AnnouncedState>()
  #position = 0

  /** @throws TypeError at construction if an option is invalid. */
  constructor(options: MemoryWebhooksOptions = {}) {
    checkOptions<MemoryWebhooksOptions>('MemoryWebhooks', options, { changes: aChangeLog })
    this.#changes = options.changes ?? new MemoryChangeLog()
  }

  async list(limit: number, after?: string): Promise<readonly Webhook[]> {
    const ids = [...this.#webhooks.keys()].filter((id) => after === undefined || id > after).sort()
    return ids.slice(0, limit).map((id) => this.#webhook(id) as Webhook)
  }

  async create({ id, ...settings }: NewWebhook, origin: ChangeOrigin): Promise<Webhook | undefined> {
    if (this.#webhooks.size >= MAX_WEBHOOKS) return undefined
    this.#webhooks.set(id, { ...settings, createdAt: origin.at, disabledAt: null, dropped: 0 })
    this.#changes.add(webhookChange('webhook.created', { id, ...settings }, origin))
    return this.#webhook(id)
  }

  async rotate(
    id: string,
    secret: string,
    until: number,
    origin: ChangeOrigin,
  ): Promise<Webhook | undefined> {
    const known = this.#webhooks.get(id)
    if (!known) return undefined
    this.#webhooks.set(id, { ...known, secret, oldSecret: { secret: known.secret, until } })
    this.#changes.add(webhookChange('webhook.rotated', { id, ...known }, origin))
    return this.#webhook(id)
  }

  async delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    const known = this.#webhooks.get(id)
    if (!known) return false
    this.#webhooks.delete(id)
    for (const [position, { webhook }] of this.#deliveries)
      if (webhook === id) this.#deliveries.delete(position)
    this.#changes.add(webhookChange('webhook.deleted', { id, ...known }, origin))
    return true
  }

  async deliveries({ webhook, before, limit }: DeliveryQuery): Promise<readonly Delivery[] | undefined> {
    if (!this.#webhooks.has(webhook)) return undefined
    return [...this.#deliveries]
      .filter(([position, delivery]) => delivery.webhook === webhook && position < Number(before ?? Infinity))
      .reverse()
      .slice(0, limit)
      .map(([position, { event, webhook: _, owner: __, ...rest }]) => {
        const { id, type, subject } = event
        return { ...rest, id: String(position), event: id, type, subject }
      })
  }

  async record(events: readonly WebhookEvent[]): Promise<void> {
    for (const event of events) {
      if (this.#recorded.has(event.id)) continue
      this.#recorded.set(event.id, event.at)
      // As JSON, like any other outbox.
      this.#new.push({ ...event, data: JSON.parse(JSON.stringify(event.data)) })
    }
  }

  async announce(
    subject: string,
    at: number,
    decide: (last: AnnouncedState | undefined) => Announcement | undefined,
  ): Promise<boolean> {
    const announcement = decide(this.#states.get(subject))
    if (!announcement) return false
    this.#states.set(subject, { state: announcement.state, at })
    if (announcement.event) await this.record([announcement.event])
    return announcement.event !== undefined
  }

  async announced(state: string): Promise<ReadonlyMap<string, AnnouncedState>> {
    return new Map([...this.#states].filter(([, last]) => last.state === state))
  }

  async claimTurn(name: string, now: number, everyMs: number): Promise<boolean> {
    const last = this.#states.get(name)
    // A turn that seems to come was taken before the clock was set back.
    if (last && Math.abs(now - last.at) < everyMs) return false
    this.#states.set(name, { state: 'turn', at: now })
    return true
  }

  async createDeliveries(now: number): Promise<CreatedDeliveries> {
    const events = this.#new
    this.#new = []
    const dropped = new Map<string, number>()
    for (const [webhook, { events: wanted, disabledAt, dropped: before }] of this.#webhooks) {
      if (disabledAt !== null) continue
      for (const event of events)
        if (wanted === null || wanted.includes(event.type)) this.#add(webhook, event, now)
      const waiting = [...this.#deliveries].filter(
        ([, one]) => one.webhook === webhook && one.nextAt !== null,
      )
      const over = waiting.length - MAX_WAITING
      if (over <= 0) continue
      for (const [position] of waiting.filter(([, { owner }]) => owner === null).slice(0, over))
        this.#set(position, { nextAt: null, error: DROPPED_ERROR })
      this.#webhooks.set(webhook, {
        ...(this.#webhooks.get(webhook) as KnownWebhook),
        dropped: before + over,
      })
      dropped.set(webhook, over)
    }
    return { events: events.length, dropped }
  }

  async oldestWaiting(): Promise<number | null> {
    const waiting = [...this.#deliveries.values()].filter(({ nextAt }) => nextAt !== null)
    const times = [...waiting.map(({ createdAt }) => createdAt), ...this.#new.map(({ at }) => at)]
    return times.length > 0 ? Math.min(...times) : null
  }

  async due(now: number): Promise<readonly string[]> {
    const due = [...this.#deliveries.values()].filter((delivery) => isDue(delivery, now))
    return [...new Set(due.map(({ webhook }) => webhook))]
  }

  async claim({ webhook, owner, now, until, limit }: DeliveryClaim): Promise<readonly ClaimedDelivery[]> {
    const known = this.#webhooks.get(webhook)
    const waits = new Set<string>()
    const claimed: ClaimedDelivery[] = []
    for (const [position, delivery] of this.#deliveries) {
      const { webhook: of, event, nextAt, attempts } = delivery
      if (of !== webhook || nextAt === null || waits.has(event.subject)) continue
      waits.add(event.subject)
      if (!known || !isDue(delivery, now) || claimed.length === limit) continue
      this.#set(position, { owner, nextAt: until, attempts: attempts + 1 })
      const { secret, oldSecret, url } = known
      const secrets = oldSecret && oldSecret.until > now ? [secret, oldSecret.secret] : [secret]
      claimed.push({ id: String(position), webhook, url, secrets, event, attempts: attempts + 1 })
    }
    return claimed
  }

  async finish(id: string, owner: string, end: AttemptEnd, now: number): Promise<void> {
    const delivery = this.#deliveries.get(Number(id))
    if (!delivery || delivery.owner !== owner) return
    if (end.kind === 'handed_back')
      this.#set(Number(id), { owner: null, nextAt: now, attempts: delivery.attempts - 1 })
    else if (end.kind === 'delivered') {
      const { status } = end
      this.#set(Number(id), { owner: null, nextAt: null, status, error: null, deliveredAt: now })
    } else if (end.kind === 'failed') {
      const { status, error, nextAt } = end
      this.#set(Number(id), { owner: null, status, error, nextAt })
    } else this.#disable(delivery.webhook, end.status, now)
  }

  async prune(before: number, limit: number): Promise<number> {
    const old = [...this.#deliveries].filter(([, { createdAt }]) => createdAt < before).slice(0, limit)
    for (const [position] of old) this.#deliveries.delete(position)
    for (const [id, at] of this.#recorded) if (at < before) this.#recorded.delete(id)
    for (const [subject, { state, at }] of this.#states)
      if (at < before && !LASTING_STATES.includes(state)) this.#states.delete(subject)
    return old.length
  }

  #webhook(id: string): Webhook | undefined {
    const known = this.#webhooks.get(id)
    if (!known) return undefined
    const { secret: _, oldSecret: __, ...webhook } = known
    return { id, ...webhook }
  }

  #add(webhook: string, event: WebhookEvent, now: number): void {
    const rest = { attempts: 0, status: null, error: null, deliveredAt: null, owner: null }
    this.#deliveries.set(++this.#position, { webhook, event, createdAt: now, nextAt: now, ...rest })
  }

  #set(position: number, change: Partial<KnownDelivery>): void {
    this.#deliveries.set(position, { ...(this.#deliveries.get(position) as KnownDelivery), ...change })
  }

  #disable(webhook: string, status: number, now: number): void {
    const known = this.#webhooks.get(webhook)
    if (known) this.#webhooks.set(webhook, { ...known, disabledAt: now })
    for (const [position, delivery] of this.#deliveries)
      if (delivery.webhook === webhook && delivery.nextAt !== null)
        this.#set(position, { owner: null, nextAt: null, status, error: GONE_ERROR })
  }
}

/** Whether an attempt is due. One that seems further ahead than any was planned before the clock was set back. */
function isDue({ owner, nextAt }: KnownDelivery, now: number): boolean {
  return nextAt !== null && (nextAt <= now || (owner === null && nextAt > now + LONGEST_WAIT_MS))
}

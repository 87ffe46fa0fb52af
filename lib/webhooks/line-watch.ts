import { MAX_CLOCK_SKEW_MS, type WebhookOutbox } from './outbox.ts'
import { newEvent } from './webhook-event.ts'

/** A line as a process sees it. */
export interface WatchedLine {
  readonly id: string
  /** Whether its own circuit is open, or half open, to all accounts. */
  readonly down: boolean
}

/** How often a process that sees a line down says so again. */
const CONFIRM_EVERY_MS = 20_000
/** A line that nobody has said to be down for so long is up: the process that saw it down has ended. */
const FORGOTTEN_AFTER_MS = 60_000

/**
 * Tells which lines go down and come up. Each process has circuits of its own: a line is down once the first of them opens,
 * and up once the first process that saw it open sees it closed, because a call has succeeded then.
 */
export class LineWatch {
  readonly #outbox: WebhookOutbox
  readonly #lines: () => readonly WatchedLine[]
  /** The lines that this process sees down, and when it said so last. */
  readonly #down = new Map<string, number>()
  #confirmedAt = Number.NEGATIVE_INFINITY

  constructor(outbox: WebhookOutbox, lines: () => readonly WatchedLine[]) {
    this.#outbox = outbox
    this.#lines = lines
  }

  async check(now: number): Promise<void> {
    const lines = this.#lines()
    for (const { id, down } of lines) {
      const saidAt = this.#down.get(id)
      if (down && saidAt === undefined) await this.#announceDown(id, now)
      else if (down && Math.abs(now - Number(saidAt)) >= CONFIRM_EVERY_MS) await this.#confirm(id, now)
      else if (!down && saidAt !== undefined) {
        await this.#announceUp(id, now, () => true)
        this.#down.delete(id)
      }
    }
    // A line that the config has no more begins anew if it comes back.
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

  /** @param isOver whether what was said last, at this time, that the line is down no longer holds. */
  async #announceUp(id: string, at: number, isOver: (saidAt: number) => boolean): Promise<void> {
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

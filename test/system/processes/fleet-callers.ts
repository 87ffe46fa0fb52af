import { setTimeout as sleep } from 'node:timers/promises'
import { chat, post } from '../../support/gateway-process.ts'

/** The answer to one caller, and its time. */
export interface Answered {
  readonly at: number
  readonly key: string
  /** The gateway that was asked. */
  readonly url: string
  readonly status: number | null
  readonly code: string | undefined
  readonly requestId: string | null
}

/** Callers of several gateways, who wait as the answers say and repeat what failed under the same Idempotency-Key. */
export class FleetCallers {
  readonly answers: Answered[] = []
  readonly #urls: () => readonly string[]
  readonly #running: Promise<void>[] = []
  readonly #over = new AbortController()
  #wanted = 0

  /** @param urls of the gateways that callers know at the moment. */
  constructor(urls: () => readonly string[]) {
    this.#urls = urls
  }

  /** Begins to call with a key of the gateway, about every `pauseMs`. */
  add(key: string, count: number, pauseMs: number): void {
    for (let i = 0; i < count; i++) this.#running.push(this.#call(key, i, pauseMs))
  }

  /** Waits for the answers that are on their way, and repeats nothing any more. */
  async end(): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#running)
  }

  /** The answers of a key with a status. */
  of(key: string, status: number): readonly Answered[] {
    return this.answers.filter((answer) => answer.key === key && answer.status === status)
  }

  /** How many calls of a key each gateway has served since a time. */
  servedSince(key: string, from: number): ReadonlyMap<string, number> {
    const served = new Map<string, number>()
    for (let i = this.answers.length - 1; i >= 0; i--) {
      const answer = this.answers[i] as Answered
      if (answer.at < from) break
      if (answer.key === key && answer.status === 200)
        served.set(answer.url, (served.get(answer.url) ?? 0) + 1)
    }
    return served
  }

  /** The longest time, in milliseconds, between two served calls of a key, from a time on. */
  longestGap(key: string, from: number): number {
    const times = [from, ...this.of(key, 200).map(({ at }) => at)].filter((at) => at >= from)
    return Math.max(...times.slice(1).map((at, i) => at - (times[i] as number)))
  }

  async #call(key: string, caller: number, pauseMs: number): Promise<void> {
    await this.#pause(Math.random() * pauseMs)
    for (let turn = caller; !this.#isOver; turn++) {
      const idempotencyKey = `${key}-${++this.#wanted}`
      for (let tries = 0; tries < 40 && !this.#isOver; tries++) {
        const waitMs = await this.#send(key, idempotencyKey, turn + tries)
        if (waitMs === undefined) break
        await this.#pause(waitMs)
      }
      await this.#pause(pauseMs * (0.5 + Math.random()))
    }
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#over.signal }).catch(() => {})
  }

  /** Returns how long to wait before the same is sent again; undefined if it is done. */
  async #send(key: string, idempotencyKey: string, turn: number): Promise<number | undefined> {
    const urls = this.#urls()
    const url = `${urls[turn % urls.length]}`
    const headers = { authorization: `Bearer ${key}`, 'idempotency-key': idempotencyKey }
    const answer = { key, url, code: undefined, requestId: null }
    try {
      const limit = AbortSignal.timeout(20_000)
      const response = await post(url, chat('m'), headers, limit)
      const json = (await response.json()) as { error?: { code?: string } }
      const { status } = response
      const code = json.error?.code
      const requestId = response.headers.get('x-request-id')
      this.answers.push({ ...answer, at: performance.now(), status, code, requestId })
      if (status === 200 || code === 'idempotency_key_replayed') return undefined
      return Number(response.headers.get('retry-after') ?? 0.1) * 1000
    } catch {
      this.answers.push({ ...answer, at: performance.now(), status: null })
      return 50
    }
  }
}

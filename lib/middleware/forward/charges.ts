import type { CallOutcome, HeldPart, OpenCall, ServedBy } from '../../core/call/index.ts'
import type { Price } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'

const NOTHING_USED = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const

/**
 * Charges a success durably, with the first minute.
 *
 * @throws {GatewayError} if that does not succeed in time.
 */
export async function settleAtPrice(call: OpenCall, servedBy: ServedBy, outcome: CallOutcome): Promise<void> {
  call.usage = servedBy.price.perMinute > 0n ? { ...NOTHING_USED, minutes: 1 } : NOTHING_USED
  call.servedBy = servedBy
  // The end of the call is known only later, so its log entry is not written with its charge.
  if (call.entryBy === 'ledger') call.entryBy = 'writer'
  await call.settle({ outcome, unsent: null })
  call.assertOwnsClaim()
}

const MINUTE_MS = 60_000
/** How long before a minute its money is held. */
const AHEAD_MS = 5000
/** How often it is tried to hold it until then. */
const RETRY_MS = 1000

/**
 * Charges each minute of an answer or WebSocket when it begins, the first one apart, which the call was settled with.
 * The money of a minute is held shortly before. If it cannot be held until the minute before is over, the call ends.
 */
export class PaidMinutes {
  readonly #call: OpenCall
  readonly #price: bigint
  readonly #end: (error: GatewayError) => void
  #timer: NodeJS.Timeout | undefined
  #held: HeldPart | undefined
  #closed = false

  /** @param end ends the call. */
  constructor(call: OpenCall, { perMinute }: Price, end: (error: GatewayError) => void) {
    this.#call = call
    this.#price = perMinute
    this.#end = end
    if (perMinute > 0n && call.billing?.holdPart)
      void this.#run().catch((error: unknown) => this.#fail(error))
  }

  /** Stops charging, and releases what is held. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#held?.release()
  }

  async #run(): Promise<void> {
    for (let over = performance.now() + MINUTE_MS; ; over += MINUTE_MS) {
      await this.#until(over - AHEAD_MS)
      const refusal = await this.#hold(over)
      await this.#until(over)
      if (this.#closed) return
      const error = this.#held ? await this.#charge(this.#held) : refusal
      if (error) {
        this.#end(error)
        return
      }
    }
  }

  /** Holds the money of the next minute, if need be in several attempts. Returns why there is none. */
  async #hold(over: number): Promise<GatewayError | undefined> {
    for (;;) {
      const item = { unit: 'minute', quantity: 1, price: this.#price } as const
      const held = await this.#call.billing?.holdPart?.(item)
      if (!(held instanceof GatewayError)) {
        this.#held = held
        if (this.#closed) held?.release()
        return undefined
      }
      if (performance.now() + RETRY_MS > over) return held
      await this.#until(performance.now() + RETRY_MS)
    }
  }

  async #charge(held: HeldPart): Promise<GatewayError | undefined> {
    this.#held = undefined
    const { usage } = this.#call
    if (usage) this.#call.usage = { ...usage, minutes: (usage.minutes ?? 0) + 1 }
    return held.charge()
  }

  #fail(cause: unknown): void {
    this.#call.logger.error({ err: cause, requestId: this.#call.id }, 'a minute could not be charged')
    this.#end(new GatewayError('internal_error', { cause }))
  }

  /** Never resolves once the call is over. */
  #until(time: number): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#closed) this.#timer = setTimeout(resolve, Math.max(0, time - performance.now())).unref()
    })
  }
}

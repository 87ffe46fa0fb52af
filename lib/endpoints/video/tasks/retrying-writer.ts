import { setTimeout as pause } from 'node:timers/promises'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import { within } from '../../../core/timing/index.ts'

/** Options of {@link RetryingWriter}. Times are milliseconds. */
export interface RetryingWriterOptions {
  /** How long a call waits for its record. Defaults to 1500. */
  waitMs?: number
  /** How long to wait after a failure before the next try. Defaults to 1000. */
  retryMs?: number
  /** Logs records that cannot be written at once, and those that were never written. Defaults to the console. */
  logger?: Logger
}

/**
 * Writes the results of creates. It repeats a write until the store answers. A record that is not written when the
 * process ends is lost; its intent then counts as unresolved.
 *
 * @example
 * const records = new RetryingWriter({ logger })
 * const task = await records.write('created', id, () => store.created(id, created, Date.now()))
 * if (task === 'late') throw call.refuse('billing_unavailable')
 */
export class RetryingWriter {
  readonly #waitMs: number
  readonly #retryMs: number
  readonly #logger: Logger
  readonly #open = new Map<Promise<unknown>, { readonly what: string; readonly task: string }>()
  readonly #closing = new AbortController()

  constructor({ waitMs = 1500, retryMs = 1000, logger }: RetryingWriterOptions = {}) {
    this.#waitMs = waitMs
    this.#retryMs = retryMs
    this.#logger = quietLogger(logger)
  }

  /**
   * Runs an operation until it succeeds.
   *
   * @param what the name of the `TaskStore` operation, for the log.
   * @param operation may be repeated.
   * @returns the result; `late` if there is none in time; the operation then goes on.
   */
  async write<T>(what: string, task: string, operation: () => Promise<T>): Promise<T | 'late'> {
    const writing = this.#insist({ what, task }, operation)
    this.#open.set(writing, { what, task })
    void writing.finally(() => this.#open.delete(writing))
    return within(this.#waitMs, writing, () => 'late' as const)
  }

  /** The number of records that are not written yet. */
  get pending(): number {
    return this.#open.size
  }

  /** Waits until all records are written or the time is up, then logs those that are not. Never rejects. */
  async close(withinMs = 10_000): Promise<void> {
    await within(withinMs, Promise.all(this.#open.keys()), () => {})
    for (const record of this.#open.values())
      this.#logger.error(record, 'video: the result of a create was not written')
    this.#closing.abort()
    await Promise.all(this.#open.keys())
  }

  /** Repeats an operation until it succeeds; returns `late` if the process ends first. Never rejects. */
  async #insist<T>(
    record: { readonly what: string; readonly task: string },
    operation: () => Promise<T>,
  ): Promise<T | 'late'> {
    for (let failures = 0; ; failures++) {
      try {
        return await operation()
      } catch (error) {
        if (this.#closing.signal.aborted) return 'late'
        if (failures === 0)
          this.#logger.error(
            { ...record, err: error },
            'video: the result of a create could not be written; it is tried again',
          )
        await pause(this.#retryMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {})
      }
    }
  }
}

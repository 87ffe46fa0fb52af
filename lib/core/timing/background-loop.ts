/**
 * Repeats work in the background until it is closed, one run at a time. A run that fails does not end it: the work reports its
 * failures itself. Its timer does not keep the process alive.
 *
 * @example
 * const pruning = new BackgroundLoop(async () => {
 *   if ((await store.prune(500)) === 500) pruning.runIn(50)
 * }, 600_000)
 */
export class BackgroundLoop {
  readonly #work: () => Promise<void>
  readonly #everyMs: number
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /**
   * @param everyMs the time between the end of a run and the next one, in milliseconds.
   * @param firstMs the time until the first run. Defaults to the same.
   */
  constructor(work: () => Promise<void>, everyMs: number, firstMs = everyMs) {
    this.#work = work
    this.#everyMs = everyMs
    this.runIn(firstMs)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Runs the work now, or once more after a run that has begun before; also if it is closed. Rejects as the work does. */
  async runNow(): Promise<void> {
    // A run that has begun before may not see the latest change.
    if (this.#running) await this.#running.catch(() => {})
    this.#running ??= this.#run()
    return this.#running
  }

  /** Runs the work as {@link runNow} does, unless the loop is closed by then. Never rejects. */
  async wake(): Promise<void> {
    if (this.#running) await this.#running.catch(() => {})
    if (this.#closed) return
    this.#running ??= this.#run()
    await this.#running.catch(() => {})
  }

  /** Sets the time until the next run, in milliseconds. The work may do so as well. */
  runIn(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#closed) this.#timer = setTimeout(() => void this.wake(), ms).unref()
  }

  /** Resolves when the present run has ended. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#running?.catch(() => {})
  }

  #run(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    return new Promise<void>((resolve) => resolve(this.#work())).finally(() => {
      this.#running = undefined
      if (!this.#timer) this.runIn(this.#everyMs)
    })
  }
}

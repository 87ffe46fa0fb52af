import { StoreAway, type StoreGuard } from '../store-guard/index.ts'

/** Tells Redis of the calls that ended, once for each sender in a turn of the event loop: thousands may end at once. */
export class CallEnds {
  readonly #tell: (sender: string, calls: number) => Promise<unknown>
  readonly #guard: StoreGuard
  #untold = new Map<string, number>()

  /** @param tell one command on Redis. */
  constructor(tell: (sender: string, calls: number) => Promise<unknown>, guard: StoreGuard) {
    this.#tell = tell
    this.#guard = guard
  }

  note(sender: string): void {
    if (this.#untold.size === 0) setImmediate(() => this.#flush())
    this.#untold.set(sender, (this.#untold.get(sender) ?? 0) + 1)
  }

  #flush(): void {
    const untold = this.#untold
    this.#untold = new Map()
    for (const [sender, calls] of untold)
      this.#guard
        // Nobody waits for it: it is no reason to call Redis away.
        .retry(() => this.#tell(sender, calls))
        .catch((error: unknown) => {
          // What was not told pardons nobody; others may wait a second longer for it.
          if (!(error instanceof StoreAway)) throw error
        })
  }
}

import { StoreAway, type StoreGuard } from '../../core/store-guard/index.ts'

/** What {@link SlotLeases} does on Redis; each for one set of slots. */
export interface SlotCommands {
  renew(key: string, ids: readonly string[]): Promise<unknown>
  /** With whatever else goes out at the end of this turn of the event loop. */
  giveBack(key: string, id: string): void
}

/** Most ids in one command: a script's arguments are copied to a stack of bounded size. */
const BATCH = 1000

type IdsByKey = Map<string, Set<string>>

/**
 * The slots that this process holds in Redis. Their leases are renewed while their calls run, so that those of a killed
 * process end by themselves. What could not be given back while Redis was away is given back when it answers again,
 * and what runs is taken again.
 */
export class SlotLeases {
  readonly #commands: SlotCommands
  readonly #guard: StoreGuard
  readonly #renewMs: number
  readonly #live: IdsByKey = new Map()
  /** Those among the live ones that Redis cannot know: admitted while it was away. */
  readonly #untold: IdsByKey = new Map()
  /** Given back, of which Redis said nothing in time. */
  readonly #unconfirmed: IdsByKey = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(commands: SlotCommands, guard: StoreGuard, renewMs: number) {
    this.#commands = commands
    this.#guard = guard
    this.#renewMs = renewMs
  }

  /** @param told whether Redis was asked for it. */
  hold(key: string, id: string, told: boolean): void {
    add(this.#live, key, id)
    if (!told) add(this.#untold, key, id)
    this.#keepReconciling()
  }

  /**
   * Gives a slot back. What Redis cannot know is only forgotten: an outage may be long.
   *
   * @param asked whether Redis may have it although it is not held.
   */
  release(key: string, id: string, asked: boolean): void {
    const held = remove(this.#live, key, id)
    if (this.#untold.size > 0 && remove(this.#untold, key, id)) return
    if (held || asked) this.#commands.giveBack(key, id)
  }

  /**
   * Redis has it after all. It was given back already unless its call runs, but a cluster that is moving keys is asked
   * again for what it could not do, which may have come behind that.
   */
  takenLate(key: string, id: string): void {
    if (!this.#live.get(key)?.has(id)) this.#commands.giveBack(key, id)
  }

  /** Redis did not say that it has slots back: it is told again. Twice does no harm. */
  unconfirmed(key: string, ids: readonly string[]): void {
    for (const id of ids) add(this.#unconfirmed, key, id)
    this.#keepReconciling()
  }

  /** Gives back again what Redis did not say that it has. */
  giveBackAgain(): void {
    const unconfirmed = [...this.#unconfirmed]
    this.#unconfirmed.clear()
    for (const [key, ids] of unconfirmed) for (const id of ids) this.#commands.giveBack(key, id)
  }

  /** Makes Redis agree with what this process holds. */
  reconcile(): void {
    const wasUnconfirmed = this.#unconfirmed.size > 0
    this.giveBackAgain()
    for (const [key, ids] of this.#live) {
      for (const batch of batches(ids)) {
        const renew = () => {
          for (const id of batch) remove(this.#untold, key, id)
          return this.#commands.renew(key, batch)
        }
        void this.#guard.run(renew).catch(ignoreOutage)
      }
    }
    if (this.#live.size > 0 || wasUnconfirmed) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #keepReconciling(): void {
    this.#timer ??= setInterval(() => this.reconcile(), this.#renewMs).unref()
  }
}

/** The guard has told of it; the next reconciliation tries again. */
function ignoreOutage(error: unknown): void {
  if (!(error instanceof StoreAway)) throw error
}

function add(to: IdsByKey, key: string, id: string): void {
  const ids = to.get(key)
  if (ids) ids.add(id)
  else to.set(key, new Set([id]))
}

/** Whether it was there. */
function remove(from: IdsByKey, key: string, id: string): boolean {
  const ids = from.get(key)
  if (!ids?.delete(id)) return false
  if (ids.size === 0) from.delete(key)
  return true
}

function batches(ids: ReadonlySet<string>): string[][] {
  const all = [...ids]
  const count = Math.ceil(all.length / BATCH)
  return Array.from({ length: count }, (_, i) => all.slice(i * BATCH, (i + 1) * BATCH))
}

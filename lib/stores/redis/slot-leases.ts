import { StoreAway, type StoreGuard } from '../../core/store-guard/index.ts'

/** What {@link SlotLeases} asks of Redis, for one set of slots at a time. */
export interface SlotCommands {
  renew(key: string, ids: readonly string[]): Promise<unknown>
  /** Gives a slot back with the next batch. Resolves when Redis has it, or is no longer waited for. */
  giveBack(key: string, id: string): Promise<void>
}

/** The most ids in one command. Redis copies the arguments of a script to a stack of bounded size. */
const MAX_IDS = 1000

type IdsByKey = Map<string, Set<string>>

/**
 * The slots that this process holds in Redis. Renews their leases while their calls run; those of a killed process end by
 * themselves. After an outage it gives back what it could not give back meanwhile, and takes again what runs.
 */
export class SlotLeases {
  readonly #commands: SlotCommands
  readonly #guard: StoreGuard
  readonly #renewMs: number
  readonly #live: IdsByKey = new Map()
  /** The live slots that Redis does not know: their calls were admitted while it was away. */
  readonly #unknown: IdsByKey = new Map()
  /** Slots that were given back and that Redis did not confirm in time. */
  readonly #unconfirmed: IdsByKey = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(commands: SlotCommands, guard: StoreGuard, renewMs: number) {
    this.#commands = commands
    this.#guard = guard
    this.#renewMs = renewMs
  }

  /** @param isKnown whether Redis was asked for the slot. */
  hold(key: string, id: string, isKnown: boolean): void {
    add(this.#live, key, id)
    if (!isKnown) add(this.#unknown, key, id)
    this.#keepReconciling()
  }

  /**
   * Gives a slot back. One that Redis does not know is only forgotten: an outage may be long.
   *
   * @param asked whether Redis may have the slot although this process does not hold it.
   * @returns a promise that resolves when the slot is free; undefined if there is nothing to wait for.
   */
  release(key: string, id: string, asked: boolean): Promise<void> | undefined {
    const held = remove(this.#live, key, id)
    if (this.#unknown.size > 0 && remove(this.#unknown, key, id)) return undefined
    return held || asked ? this.#commands.giveBack(key, id) : undefined
  }

  /**
   * Notes that Redis took a slot after all. Unless the call runs, the slot was given back already. But ioredis repeats what
   * a cluster refused while it moves keys, so that the taking may have come after the giving back.
   */
  takenLate(key: string, id: string): void {
    if (!this.#live.get(key)?.has(id)) void this.#commands.giveBack(key, id)
  }

  /** Notes slots whose return Redis did not confirm. They are given back again; twice does no harm. */
  unconfirmed(key: string, ids: readonly string[]): void {
    for (const id of ids) add(this.#unconfirmed, key, id)
    this.#keepReconciling()
  }

  /** Gives back again what Redis did not confirm. */
  giveBackAgain(): void {
    const unconfirmed = [...this.#unconfirmed]
    this.#unconfirmed.clear()
    for (const [key, ids] of unconfirmed) for (const id of ids) void this.#commands.giveBack(key, id)
  }

  /** Makes Redis agree with what this process holds. */
  reconcile(): void {
    const wasUnconfirmed = this.#unconfirmed.size > 0
    this.giveBackAgain()
    for (const [key, ids] of this.#live) {
      for (const batch of batches(ids)) {
        const renew = () => {
          for (const id of batch) remove(this.#unknown, key, id)
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

/** The guard logs outages, and the next reconciliation tries again. */
function ignoreOutage(error: unknown): void {
  if (!(error instanceof StoreAway)) throw error
}

function add(to: IdsByKey, key: string, id: string): void {
  const ids = to.get(key)
  if (ids) ids.add(id)
  else to.set(key, new Set([id]))
}

/** Returns whether the id was there. */
function remove(from: IdsByKey, key: string, id: string): boolean {
  const ids = from.get(key)
  if (!ids?.delete(id)) return false
  if (ids.size === 0) from.delete(key)
  return true
}

function batches(ids: ReadonlySet<string>): string[][] {
  const all = [...ids]
  const count = Math.ceil(all.length / MAX_IDS)
  return Array.from({ length: count }, (_, i) => all.slice(i * MAX_IDS, (i + 1) * MAX_IDS))
}

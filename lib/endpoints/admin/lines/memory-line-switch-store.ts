import { aChangeLog, type ChangeOrigin, MemoryChangeLog } from '../../../core/change-log/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import { type LineSwitchStore, lineSwitch, restLift } from './line-switch-store.ts'

/**
 * A line switch store in this process's memory.
 *
 * @example
 * const switches = new MemoryLineSwitchStore()
 */
export class MemoryLineSwitchStore implements LineSwitchStore {
  readonly #switches = new Map<string, boolean>()
  readonly #lifts = new Map<string, number>()
  readonly #changes: MemoryChangeLog

  /** @param options.changes where changes are recorded. Defaults to a log of its own. */
  constructor(options: { changes?: MemoryChangeLog } = {}) {
    checkOptions<{ changes?: MemoryChangeLog }>('MemoryLineSwitchStore', options, { changes: aChangeLog })
    this.#changes = options.changes ?? new MemoryChangeLog()
  }

  async all(): Promise<ReadonlyMap<string, boolean>> {
    return new Map(this.#switches)
  }

  async set(line: string, enabled: boolean | null, origin: ChangeOrigin): Promise<void> {
    const before = this.#switches.get(line) ?? null
    if (before === enabled) return
    if (enabled === null) this.#switches.delete(line)
    else this.#switches.set(line, enabled)
    this.#changes.add(lineSwitch(line, before, enabled, origin))
  }

  async lifts(): Promise<ReadonlyMap<string, number>> {
    return new Map(this.#lifts)
  }

  async lift(line: string, rests: readonly object[], origin: ChangeOrigin): Promise<void> {
    this.#lifts.set(line, (this.#lifts.get(line) ?? 0) + 1)
    this.#changes.add(restLift(line, rests, origin))
  }
}

import assert from 'node:assert/strict'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'

/** How long what keeps a process from ending may stay behind the last test. */
const STAYS_MS = 10_000

/** The state that test files share with those that follow them in the same process. */
export class ProcessState {
  readonly #shared = shared()
  readonly #open = process.getActiveResourcesInfo()

  /** Returns what keeps the process from ending, did not do so before, and stays. */
  async leftOpen(): Promise<string[]> {
    const deadline = performance.now() + STAYS_MS
    for (let open = this.#opened(); ; open = this.#opened()) {
      if (open.length === 0 || performance.now() > deadline) return open
      await sleep(5)
      // Until the next turn, the timer of this wait counts as open.
      await setImmediate()
    }
  }

  /** Throws where anything is not as it was. */
  assertUnchanged(): void {
    const now = shared()
    const changed = [...this.#shared].filter(([name, value]) => !Object.is(value, now.get(name)))
    assert.ok(changed.length === 0, `not as it was: ${changed.map(([name]) => name).join(', ')}`)
  }

  #opened(): string[] {
    const left = [...this.#open]
    return process.getActiveResourcesInfo().filter((name) => {
      const at = left.indexOf(name)
      if (at >= 0) left.splice(at, 1)
      return at < 0
    })
  }
}

/** Returns all that every file sees, by its name; additions of a package are no part of this. */
function shared(): Map<string, unknown> {
  const { performance, process, console } = globalThis
  const objects = { globalThis, Date: globalThis.Date, Math: globalThis.Math, performance, console }
  const members = Object.entries(objects).flatMap(([name, object]) =>
    Object.entries(Object.getOwnPropertyDescriptors(object)).map(
      ([key, { value, get }]): [string, unknown] => [`${name}.${key}`, get ?? value],
    ),
  )
  const listeners = process
    .eventNames()
    .map((event): [string, unknown] => [`listeners of ${String(event)}`, process.listenerCount(event)])
  const environment = JSON.stringify(process.env)
  return new Map([
    ...members,
    ...listeners,
    // Of the prototype.
    ['the monotonic clock', performance.now],
    ['the environment', environment],
    ['the folder', process.cwd()],
  ])
}

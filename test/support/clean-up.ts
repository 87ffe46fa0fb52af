import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

const ENDS_WITHIN_MS = 45_000

/** Ends what was started: the context of a test, or {@link cleaningUp}. */
export interface CleanUp {
  /** Has something ended behind the last test, as soon as it has been started. */
  after(end: () => unknown): void
}

/**
 * Ends what a file or a suite has started, behind its last test: the last first, each though another fails or never ends,
 * and nothing that has not come to be. Called where `describe` would be, or in its body.
 *
 * @param hook when it ends; `afterEach` for what is started before each test. Defaults to `after`.
 * @example
 * const cleanUp = cleaningUp()
 * before(async () => {
 *   upstream = await startUpstream()
 *   cleanUp.after(() => upstream.close())
 * })
 */
export function cleaningUp(hook: (run: () => Promise<void>) => void = after): CleanUp {
  const ends: (() => unknown)[] = []
  hook(async () => {
    const failures: unknown[] = []
    for (const end of ends.splice(0).reverse()) {
      try {
        await Promise.race([end(), tooLong(end)])
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 1) throw new AggregateError(failures, 'not everything has ended')
    if (failures.length > 0) throw failures[0]
  })
  return { after: (end) => void ends.push(end) }
}

async function tooLong(end: () => unknown): Promise<never> {
  await sleep(ENDS_WITHIN_MS, undefined, { ref: false })
  throw new Error(`had not ended after ${ENDS_WITHIN_MS / 1000} s: ${end}`)
}

import { kindOf } from '../options/index.ts'
import { within } from '../time-limit/index.ts'

/** As long as a store of the app may take. */
const SETTLES_MS = 10_000

/**
 * Returns what a function of the app has thrown, as an error. Express takes `undefined` for no failure, and the texts
 * "route" and "router" for a wish to go on elsewhere: the call would go on without the middleware that has failed.
 */
export function errorOf(what: string, thrown: unknown): unknown {
  if (typeof thrown === 'object' && thrown !== null) return thrown
  return new TypeError(`${what} threw ${kindOf(thrown)} in place of an error`)
}

/**
 * Returns the answer of a function of the app that may return a promise. What becomes of the promise later is dropped.
 *
 * @throws what it rejects with, or an error if it does not settle in time.
 */
export async function settled<T>(what: string, answer: T | PromiseLike<T>): Promise<T> {
  try {
    return await within(SETTLES_MS, Promise.resolve(answer), () => {
      throw new Error(`${what} did not answer in ${SETTLES_MS} ms`)
    })
  } catch (error) {
    throw errorOf(what, error)
  }
}

/** If a value is a promise that nobody waits for, its failure goes to `failed`. Returns whether it is one. */
export function dropFailure(value: unknown, failed: (error: unknown) => void = ignore): boolean {
  const promise = value as PromiseLike<unknown> | null | undefined
  if (typeof promise?.then !== 'function') return false
  promise.then(undefined, failed)
  return true
}

function ignore(): void {}

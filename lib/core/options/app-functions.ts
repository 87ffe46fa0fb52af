import type { Logger } from '../call/index.ts'
import { isPromise, type MaybePromise, within } from '../timing/index.ts'
import { kindOf, type OptionRule } from './options.ts'

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
 * Returns the answer of a function of the app that may return a promise. A later outcome of the promise is dropped.
 *
 * @param what names the function in errors.
 * @throws what it throws or rejects with, or an error if its promise does not settle in time.
 */
export function settled<T>(what: string, ask: () => T | PromiseLike<T>): MaybePromise<T> {
  try {
    const answer = ask()
    return isPromise(answer) ? inTime(what, answer) : answer
  } catch (error) {
    throw errorOf(what, error)
  }
}

/**
 * Awaits the answer of a function of the app.
 *
 * @param what names the function in errors.
 * @throws what the promise rejects with, or an error if it does not settle in time.
 */
export async function inTime<T>(what: string, answer: PromiseLike<T>): Promise<T> {
  try {
    return await within(SETTLES_MS, Promise.resolve(answer), () => {
      throw new Error(`${what} did not answer in ${SETTLES_MS} ms`)
    })
  } catch (error) {
    throw errorOf(what, error)
  }
}

/** Passes the rejection of a promise that is not awaited to `failed`. Returns whether the value is a promise. */
export function catchRejection(value: unknown, failed: (error: unknown) => void = ignore): boolean {
  if (!isPromise(value)) return false
  value.then(undefined, failed)
  return true
}

function ignore(): void {}

/**
 * Returns a function of the app that always returns what it must, or throws an error that names it. A promise is no
 * answer: nobody waits for it, and its failure is dropped.
 *
 * @param what names the function, such as `billingGuard: "reserve"`.
 * @param rule what it must return.
 * @example
 * const by = checkedFunction('idempotency: "by"', aString(), options.by)
 */
export function checkedFunction<Given extends readonly unknown[], T>(
  what: string,
  { be, accepts }: Pick<OptionRule, 'be' | 'accepts'>,
  own: (...given: Given) => T,
): (...given: Given) => T {
  return function checkedFunction(...given: Given): T {
    let answer: T
    try {
      answer = own(...given)
    } catch (error) {
      throw errorOf(what, error)
    }
    if (!isPromise(answer) && accepts(answer)) return answer
    const kind = catchRejection(answer) ? 'a promise of it' : kindOf(answer)
    throw new TypeError(`${what} must return ${be}, not ${kind}`)
  }
}

/** Calls a listener of the app. If it throws, or rejects, `message` is logged; it has no other effect. */
export function notify(logger: Logger, message: string, listener: () => unknown): void {
  const failed = (error: unknown): void => logger.error({ err: error }, message)
  try {
    catchRejection(listener(), failed)
  } catch (error) {
    failed(error)
  }
}

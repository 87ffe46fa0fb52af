import { kindOf, type OptionRule } from '../options/index.ts'
import { dropFailure, errorOf } from './own-failures.ts'

const NONE = Symbol('no answer yet')

/**
 * Returns a function of the app that always returns what it must, or throws an error that names it. A promise is no
 * answer: nobody waits for it, and its failure is dropped.
 *
 * @param what names the function, such as `billingGuard: "reserve"`.
 * @param rule what it must return.
 * @example
 * const scope = checkedFunction('idempotency: "scope"', aString(), options.scope)
 */
export function checkedFunction<Given extends readonly unknown[], T>(
  what: string,
  { be, accepts }: Pick<OptionRule, 'be' | 'accepts'>,
  own: (...given: Given) => T,
): (...given: Given) => T {
  /** The last answer that was accepted. Most functions return the same again. */
  let accepted: T | typeof NONE = NONE
  return function checkedFunction(...given: Given): T {
    let answer: T
    try {
      answer = own(...given)
    } catch (error) {
      throw errorOf(what, error)
    }
    if (answer === accepted) return answer
    const isPromise = typeof (answer as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function'
    if (!isPromise && accepts(answer)) {
      accepted = answer
      return answer
    }
    const kind = dropFailure(answer) ? 'a promise of it' : kindOf(answer)
    throw new TypeError(`${what} must return ${be}, not ${kind}`)
  }
}

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Whether a value has to be awaited. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}

/**
 * Calls `next` with a value: at once if it is there, otherwise once its promise has resolved.
 *
 * @example
 * const limit = then(limitOf(req), (rpm) => ({ rpm }))
 */
export function then<T, R>(value: T | PromiseLike<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value)
}

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Whether a value has to be awaited. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}

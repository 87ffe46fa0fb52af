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

/**
 * Calls a function with each item, in their order, each once the one before has its value. Returns the values, as a promise
 * only if one of them is a promise.
 */
export function inOrder<Item, T>(
  items: readonly Item[],
  ask: (item: Item) => T | PromiseLike<T>,
): MaybePromise<readonly T[]> {
  const values: T[] = []
  for (const item of items) {
    const value = ask(item)
    if (isPromise(value)) return restInOrder(values, value, items.slice(values.length + 1), ask)
    values.push(value)
  }
  return values
}

async function restInOrder<Item, T>(
  before: readonly T[],
  next: PromiseLike<T>,
  items: readonly Item[],
  ask: (item: Item) => T | PromiseLike<T>,
): Promise<readonly T[]> {
  const values = [...before, await next]
  for (const item of items) values.push(await ask(item))
  return values
}

import type { IdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'

type Operation = keyof IdempotencyStore

/** A store that works, until a test lets some of its operations fail. */
export class FaultyStore implements IdempotencyStore {
  readonly #store: IdempotencyStore
  /** The fault of an operation: `fails` before it is done, `hangs` and is never done, is done `unheard`. */
  readonly faults = new Map<Operation, 'fails' | 'hangs' | 'unheard'>()
  /** Operations that were asked for. */
  readonly asked: Operation[] = []

  constructor(store: IdempotencyStore) {
    this.#store = store
  }

  claim(...given: Parameters<IdempotencyStore['claim']>) {
    return this.#do('claim', () => this.#store.claim(...given))
  }

  renew(...given: Parameters<IdempotencyStore['renew']>) {
    return this.#do('renew', () => this.#store.renew(...given))
  }

  complete(...given: Parameters<IdempotencyStore['complete']>) {
    return this.#do('complete', () => this.#store.complete(...given))
  }

  release(...given: Parameters<IdempotencyStore['release']>) {
    return this.#do('release', () => this.#store.release(...given))
  }

  prune(...given: Parameters<IdempotencyStore['prune']>) {
    return this.#do('prune', () => this.#store.prune(...given))
  }

  async #do<T>(operation: Operation, run: () => Promise<T>): Promise<T> {
    this.asked.push(operation)
    const fault = this.faults.get(operation)
    if (fault === 'fails') throw new Error('the store is down')
    if (fault === 'unheard') await run()
    if (fault) return new Promise(() => {})
    return run()
  }
}

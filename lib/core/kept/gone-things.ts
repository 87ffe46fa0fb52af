import type { KeptThing } from './kept-store.ts'

const KNOWN_MS = 10 * 60_000
const MAX_THINGS = 10_000

interface Gone {
  readonly thing: KeptThing
  readonly until: number
}

/**
 * What is gone, for ten minutes, in this process: what lines have said that they no longer have, so that each list does not
 * ask for all of it again; and what was deleted, as a place in lists that are being paged through.
 */
export class GoneThings {
  /** In the order in which they went. */
  readonly #gone = new Map<string, Gone>()

  find({ account, kind, id }: Pick<KeptThing, 'account' | 'kind' | 'id'>): KeptThing | undefined {
    const found = this.#gone.get(JSON.stringify([account, kind, id]))
    return found && found.until > performance.now() ? found.thing : undefined
  }

  add(thing: KeptThing): void {
    this.delete(thing)
    const { account, kind, id } = thing
    this.#gone.set(JSON.stringify([account, kind, id]), { thing, until: performance.now() + KNOWN_MS })
    const [oldest] = this.#gone.keys()
    if (this.#gone.size > MAX_THINGS && oldest !== undefined) this.#gone.delete(oldest)
  }

  delete({ account, kind, id }: KeptThing): void {
    this.#gone.delete(JSON.stringify([account, kind, id]))
  }
}

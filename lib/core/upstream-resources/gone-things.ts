import { Lately } from './lately.ts'
import type { UpstreamResource } from './resource-store.ts'

const KNOWN_MS = 10 * 60_000

type Name = Pick<UpstreamResource, 'account' | 'kind' | 'id'>

/**
 * The things that are gone, for ten minutes, in this process: those that lines have reported as missing, so that a list
 * does not ask for all of them again, and those that were deleted, as places in lists that are being paged through.
 */
export class GoneThings {
  readonly #gone = new Lately<UpstreamResource>(KNOWN_MS)

  find(thing: Name): UpstreamResource | undefined {
    return this.#gone.find(thing.account, nameOf(thing))
  }

  add(thing: UpstreamResource): void {
    this.#gone.add(thing.account, nameOf(thing), thing)
  }

  delete(thing: UpstreamResource): void {
    this.#gone.delete(thing.account, nameOf(thing))
  }
}

function nameOf({ kind, id }: Name): string {
  return JSON.stringify([kind, id])
}

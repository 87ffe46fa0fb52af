import { RecentValues } from './recent-values.ts'
import type { UpstreamResource } from './resource-store.ts'

const KNOWN_MS = 10 * 60_000

type Name = Pick<UpstreamResource, 'account' | 'kind' | 'id'>

/**
 * The things that are gone, for ten minutes, in this process: those that lines have reported as missing, so that a list
 * does not ask for all of them again, and those that were deleted, as places in lists that are being paged through.
 */
export class DeletedResources {
  readonly #gone = new RecentValues<UpstreamResource>(KNOWN_MS)

  find(resource: Name): UpstreamResource | undefined {
    return this.#gone.find(resource.account, nameOf(resource))
  }

  add(resource: UpstreamResource): void {
    this.#gone.add(resource.account, nameOf(resource), resource)
  }

  delete(resource: UpstreamResource): void {
    this.#gone.delete(resource.account, nameOf(resource))
  }
}

function nameOf({ kind, id }: Name): string {
  return JSON.stringify([kind, id])
}

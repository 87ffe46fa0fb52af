import type { ResourceName } from '../operations/index.ts'

export type { ResourceName }

/** A thing that a line keeps for an account. */
export interface UpstreamResource extends ResourceName {
  readonly account: string
  /** The key that made it; null if unknown. */
  readonly key: string | null
  readonly line: string
  /** The catalogue's name of the model that made it; null if no model did. */
  readonly model: string | null
  /** About how many input tokens it adds to a request that goes on from it. */
  readonly tokens: number
  /** When it was first recorded, in milliseconds since the epoch. */
  readonly createdAt: number
  /** When it can no longer be found; null if it stays until it is deleted. */
  readonly expiresAt: number | null
}

/** The part of a list of things that is wanted. */
export interface ResourcePage {
  /** Only things of these lines. */
  readonly lines: readonly string[]
  /** By the time at which they were first recorded, and then by id. */
  readonly order: 'newest' | 'oldest'
  /** The thing behind which the page begins; it need not exist any more. */
  readonly after?: Pick<UpstreamResource, 'createdAt' | 'id'> | undefined
  /** Leaves out what has expired by then. */
  readonly aliveAt: number
  readonly limit: number
}

/** A store of the things that lines keep. Each operation is atomic and may be repeated. */
export interface ResourceStore {
  /** Writes records; replaces those with the same account, kind and id, except for the time of their creation. */
  remember(resources: readonly UpstreamResource[]): Promise<void>

  /**
   * Returns the records of an account with these names, in any order. Ids are the upstreams', so that two lines can use
   * the same one for two accounts. Leaves out what one line has named the same for several accounts: it is unknown whose
   * thing the line would use.
   */
  find(account: string, names: readonly ResourceName[]): Promise<UpstreamResource[]>

  /** Returns records of an account, in the order of the page. Leaves out the same as `find`. */
  list(account: string, kind: string, page: ResourcePage): Promise<UpstreamResource[]>

  forget(account: string, name: ResourceName): Promise<void>

  /** Deletes up to `limit` records that expired before a time, and returns how many it deleted. */
  prune(before: number, limit: number): Promise<number>
}

/** Returns an account's record among those with one name, unless its line has used the name for another account too. */
export function ownResource(
  records: readonly UpstreamResource[],
  account: string,
): UpstreamResource | undefined {
  const own = records.find((record) => record.account === account)
  const isShared = records.some((record) => record !== own && record.line === own?.line)
  return isShared ? undefined : own
}

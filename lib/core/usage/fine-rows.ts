import { hash } from 'node:crypto'
import { NO_TAGS } from '../catalog/index.ts'
import { HOUR_MS, type UsageShare } from './usage-sums.ts'

/** How many rows with users and tags the calls of one account in one hour may have, by what one process sees. */
export const MAX_FINE_ROWS = 2000

/** How many rows are remembered. Beyond that the earliest hours are forgotten; their calls may make new rows. */
const MAX_REMEMBERED = 200_000

/**
 * Bounds the number of users and tags that are counted separately, because callers can make up any number of them. An account that has too many in an
 * hour has no more of its own; others do not notice.
 */
export class FineRows {
  readonly #most: number
  readonly #named = new Map<string, Set<string>>()
  #remembered = 0

  constructor(most = MAX_FINE_ROWS) {
    this.#most = most
  }

  /** Returns what is to be counted: the share, without its user and tags if the hour of its account has too many others. */
  bounded(share: UsageShare): UsageShare {
    const { account, at, key, model, line, user, tags } = share
    if (user === null && (tags === NO_TAGS || Object.keys(tags).length === 0)) return share
    const hour = `${account}\n${Math.floor(at / HOUR_MS)}`
    let named = this.#named.get(hour)
    if (!named) {
      named = new Set()
      this.#named.set(hour, named)
    }
    const name = hash('sha256', JSON.stringify([key, model, line, user, tags]), 'base64url').slice(0, 10)
    if (named.has(name)) return share
    if (named.size >= this.#most) return { ...share, user: null, tags: NO_TAGS }
    named.add(name)
    this.#remembered += 1
    this.#forget(hour)
    return share
  }

  #forget(present: string): void {
    for (const [hour, { size }] of this.#named) {
      if (this.#remembered <= MAX_REMEMBERED || hour === present) return
      this.#named.delete(hour)
      this.#remembered -= size
    }
  }
}

import { hash } from 'node:crypto'
import { NO_TAGS } from '../catalog/index.ts'
import { HOUR_MS, type UsageDimensions } from './usage-sums.ts'

/** How many rows with users and tags the calls of one account in one hour may have, by what one process sees. */
export const MAX_FINE_ROWS = 2000

/** How many models the calls of one account in one hour may have rows of, by what one process sees. */
const MAX_MODELS = 2000

/** How many rows are remembered. Beyond that the earliest hours are forgotten; their calls may make new rows. */
const MAX_REMEMBERED = 200_000

/** The dimensions of a call, and when it counts. */
interface Counted extends UsageDimensions {
  /** Milliseconds since the epoch. */
  readonly at: number
}

/**
 * Bounds the number of users, tags and models that are counted separately, because callers can make up any number of them:
 * of models, names that a pattern matches. An account that has too many in an hour has no more of its own; others do not
 * notice.
 */
export class FineRows {
  readonly #most: number
  readonly #mostModels: number
  readonly #named = new Map<string, Set<string>>()
  readonly #models = new Map<string, Set<string>>()
  #remembered = 0

  constructor(most = MAX_FINE_ROWS, mostModels = MAX_MODELS) {
    this.#most = most
    this.#mostModels = mostModels
  }

  /**
   * Returns what is to be counted: the share, without its model, or its user and tags, if the hour of its account has too many
   * others.
   */
  bounded<Share extends Counted>(share: Share): Share {
    const { account, at, model } = share
    const hour = `${account}\n${Math.floor(at / HOUR_MS)}`
    if (model === null) return this.#withinRows(share, hour)
    const models = this.#setOf(this.#models, hour)
    if (models.size >= this.#mostModels && !models.has(model))
      return this.#withinRows({ ...share, model: null }, hour)
    if (!models.has(model)) this.#remember(models, model, hour)
    return this.#withinRows(share, hour)
  }

  #withinRows<Share extends Counted>(share: Share, hour: string): Share {
    const { key, model, line, user, tags } = share
    if (user === null && (tags === NO_TAGS || Object.keys(tags).length === 0)) return share
    const named = this.#setOf(this.#named, hour)
    const name = hash('sha256', JSON.stringify([key, model, line, user, tags]), 'base64url').slice(0, 10)
    if (named.has(name)) return share
    if (named.size >= this.#most) return { ...share, user: null, tags: NO_TAGS }
    this.#remember(named, name, hour)
    return share
  }

  #setOf(sets: Map<string, Set<string>>, hour: string): Set<string> {
    const known = sets.get(hour)
    if (known) return known
    const made = new Set<string>()
    sets.set(hour, made)
    return made
  }

  #remember(names: Set<string>, name: string, hour: string): void {
    names.add(name)
    this.#remembered += 1
    for (const sets of [this.#named, this.#models]) this.#forget(sets, hour)
  }

  #forget(sets: Map<string, Set<string>>, present: string): void {
    for (const [hour, { size }] of sets) {
      if (this.#remembered <= MAX_REMEMBERED || hour === present) return
      sets.delete(hour)
      this.#remembered -= size
    }
  }
}

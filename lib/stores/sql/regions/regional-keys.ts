import type { HomeExchange } from '../../../ledger/regions/home-exchange.ts'
import type { KeyDirectory, KeyRecord } from '../../../middleware/authenticate/index.ts'
import type { HomeKey } from './mirror-rows.ts'
import type { SqlHomeStore } from './sql-home-store.ts'
import type { SqlMirrors } from './sql-mirrors.ts'

/** Another region: what asks it under a time limit, and its database. */
export interface OtherRegion {
  readonly exchange: Pick<HomeExchange, 'name' | 'ask' | 'away'>
  readonly store: Pick<SqlHomeStore, 'keysBySecret'>
}

/** The parts that {@link RegionalKeys} works with. */
export interface RegionalKeysOptions {
  /** The directory of this region, which has the copies too. */
  readonly keys: KeyDirectory
  readonly mirrors: Pick<SqlMirrors, 'copy' | 'since'>
  readonly regions: readonly OtherRegion[]
  /** Called with the ids of copied keys that are used. */
  readonly onUse: (keys: readonly string[]) => void
}

/** A copy is confirmed before it is used if nobody here has used it for this long, in milliseconds. */
const CONFIRMED_MS = 30_000
/** Secrets that one question to another region names, and that may wait for their turn. */
const AT_A_TIME = 500
const MAX_WAITING = 5000
const MAX_USED = 50_000
const READ_EVERY_MS = 2000
/** By how much the clocks of this region's processes may differ. */
const CLOCKS_MS = 60_000

/**
 * Looks up keys in this region, and in all others those that it does not know, which it copies. One question at a time asks a
 * region for all that have come meanwhile, so that guesses cost it no more than that.
 */
export class RegionalKeys implements KeyDirectory {
  readonly #options: RegionalKeysOptions
  readonly #askers: readonly SecretQuestions[]
  /** The homes of the accounts that are copies. */
  readonly #homes = new Map<string, string>()
  /** When copied keys were used here, by a monotonic clock. */
  readonly #usedAt = new Map<string, number>()
  #readAt = Number.NEGATIVE_INFINITY
  #since = 0

  constructor(options: RegionalKeysOptions) {
    this.#options = options
    this.#askers = options.regions.map((region) => new SecretQuestions(region))
  }

  /** Reads which accounts are copies; others of this region may have copied some. */
  async read(): Promise<void> {
    this.#readAt = performance.now()
    const now = Date.now()
    const copied = await this.#options.mirrors.since(this.#since)
    for (const { account, home } of copied) this.#homes.set(account, home)
    this.#since = now - CLOCKS_MS
  }

  async find(secretHash: string): Promise<KeyRecord | undefined> {
    if (performance.now() - this.#readAt > READ_EVERY_MS) await this.read()
    const found = await this.#options.keys.find(secretHash)
    if (!found) return this.#findElsewhere(secretHash)
    const home = this.#homes.get(found.account.id)
    if (home === undefined) return found
    const isKnown = this.#isConfirmed(found.id)
    this.#noteUse([found.id])
    if (isKnown) return found
    const confirmed = await this.#confirm(home, secretHash)
    if (confirmed === 'gone') return undefined
    return confirmed === 'copied' ? this.#options.keys.find(secretHash) : found
  }

  async findAll(secretHashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>> {
    const { keys } = this.#options
    const found = keys.findAll ? await keys.findAll(secretHashes) : new Map<string, KeyRecord>()
    this.#noteUse(
      [...found.values()].filter(({ account }) => this.#homes.has(account.id)).map(({ id }) => id),
    )
    return found
  }

  /** @throws if a region that may have the key does not answer. */
  async #findElsewhere(secretHash: string): Promise<KeyRecord | undefined> {
    const { keys, mirrors, regions } = this.#options
    const answers = await Promise.allSettled(this.#askers.map((asker) => asker.ask(secretHash)))
    for (const [i, answer] of answers.entries()) {
      const { name = '' } = regions[i]?.exchange ?? {}
      if (answer.status !== 'fulfilled' || !answer.value) continue
      const [copied] = await mirrors.copy(name, [answer.value])
      if (!copied) continue
      this.#homes.set(copied.account.id, name)
      this.#noteUse([copied.key.id])
      return keys.find(secretHash)
    }
    const failed = answers.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    return undefined
  }

  /** Copies a key anew, if its home answers. */
  async #confirm(home: string, secretHash: string): Promise<'copied' | 'gone' | 'away'> {
    const { mirrors, regions } = this.#options
    const at = regions.findIndex(({ exchange }) => exchange.name === home)
    const asker = this.#askers[at]
    if (!asker || regions[at]?.exchange.away) return 'away'
    let found: HomeKey | undefined
    try {
      found = await asker.ask(secretHash)
    } catch {
      return 'away'
    }
    // Its row goes with the next round.
    if (!found) return 'gone'
    await mirrors.copy(home, [found])
    return 'copied'
  }

  #isConfirmed(keyId: string): boolean {
    return performance.now() - (this.#usedAt.get(keyId) ?? Number.NEGATIVE_INFINITY) < CONFIRMED_MS
  }

  #noteUse(keyIds: readonly string[]): void {
    if (keyIds.length === 0) return
    const now = performance.now()
    if (this.#usedAt.size > MAX_USED) this.#usedAt.clear()
    for (const id of keyIds) this.#usedAt.set(id, now)
    this.#options.onUse(keyIds)
  }
}

/** Asks a region for keys, one question at a time. */
class SecretQuestions {
  readonly #region: OtherRegion
  #waiting = new Map<string, PromiseWithResolvers<HomeKey | undefined>>()
  #asking = false

  constructor(region: OtherRegion) {
    this.#region = region
  }

  /** Returns the key of a secret. Rejects if the region does not answer, or too many wait. */
  ask(secretHash: string): Promise<HomeKey | undefined> {
    const known = this.#waiting.get(secretHash)
    if (known) return known.promise
    if (this.#waiting.size >= MAX_WAITING)
      return Promise.reject(new Error(`region ${this.#region.exchange.name} is asked for too many keys`))
    const asked = Promise.withResolvers<HomeKey | undefined>()
    this.#waiting.set(secretHash, asked)
    if (!this.#asking) void this.#askAll()
    return asked.promise
  }

  async #askAll(): Promise<void> {
    this.#asking = true
    // All of this turn of the event loop go together.
    await new Promise(setImmediate)
    while (this.#waiting.size > 0) {
      const some = new Map([...this.#waiting].slice(0, AT_A_TIME))
      for (const hash of some.keys()) this.#waiting.delete(hash)
      await this.#answer(some)
    }
    this.#asking = false
  }

  async #answer(asked: ReadonlyMap<string, PromiseWithResolvers<HomeKey | undefined>>): Promise<void> {
    const { exchange, store } = this.#region
    try {
      if (exchange.away) throw new Error(`region ${exchange.name} is away`)
      const found = await exchange.ask(() => store.keysBySecret([...asked.keys()]))
      const bySecret = new Map<string, HomeKey>()
      // Another key may have been given the secret before this one's current one, which comes last.
      for (const name of ['previous_hash', 'secret_hash'] as const)
        for (const each of found) bySecret.set(each.key[name] ?? '', each)
      for (const [hash, { resolve }] of asked) resolve(bySecret.get(hash))
    } catch (error) {
      for (const { reject } of asked.values()) reject(error)
    }
  }
}

import type { HomeExchange } from '../../../ledger/regions/home-exchange.ts'
import { KnownHomes } from '../../../ledger/regions/known-homes.ts'
import type { KeyDirectory, KeyRecord } from '../../../middleware/authenticate/index.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import type { HomeKey } from './mirror-rows.ts'
import type { SqlHomeStore } from './sql-home-store.ts'
import type { SqlMirrors } from './sql-mirrors.ts'

/** Another region: what asks it under a time limit, and its database. */
export interface OtherRegion {
  readonly exchange: Pick<HomeExchange, 'name' | 'ask' | 'away'>
  readonly store: Pick<SqlHomeStore, 'keysBySecret' | 'budgetsBySecret'>
}

/** The parts that {@link RegionalKeys} works with. */
export interface RegionalKeysOptions {
  /** The directory of this region, which has the copies too. */
  readonly keys: KeyDirectory
  readonly mirrors: Pick<SqlMirrors, 'copy' | 'homesOf'>
  readonly regions: readonly OtherRegion[]
  /** Called with the ids of copied keys that are used. */
  readonly onUse: (keys: readonly string[]) => void
  /** Called when a key was copied, before it is used: its account may have got budgets. */
  readonly onCopy: () => Promise<void>
}

/** What a region has under a secret. */
interface Found {
  readonly key: HomeKey
  readonly budgets: readonly BudgetsTable[]
}

/** A copy is confirmed before it is used if nobody here has used it for this long, in milliseconds. */
const CONFIRMED_MS = 30_000
/** Secrets that one question to another region names, and that may wait for their turn. */
const AT_A_TIME = 500
const MAX_WAITING = 5000
const MAX_USED = 50_000

/**
 * Looks up keys in this region, and in all others those that it does not know, which it copies. One question at a time asks a
 * region for all that have come meanwhile, so that guesses cost it no more than that.
 */
export class RegionalKeys implements KeyDirectory {
  readonly #options: RegionalKeysOptions
  readonly #askers: readonly SecretQuestions[]
  /** Of accounts. Those that are unknown are asked for: other processes of this region copy, too. */
  readonly #homes: KnownHomes<string>
  /** When copied keys were used here, by a monotonic clock. */
  readonly #usedAt = new Map<string, number>()

  constructor(options: RegionalKeysOptions) {
    this.#options = options
    this.#homes = new KnownHomes((accounts) => options.mirrors.homesOf(accounts))
    this.#askers = options.regions.map((region) => new SecretQuestions(region))
  }

  async find(secretHash: string): Promise<KeyRecord | undefined> {
    const found = await this.#options.keys.find(secretHash)
    if (!found) return this.#findElsewhere(secretHash)
    const home = (await this.#homes.of([found.account.id])).get(found.account.id)
    if (!home) return found
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
    const all = [...found.values()]
    const homes = await this.#homes.of(all.map(({ account }) => account.id))
    this.#noteUse(all.filter(({ account }) => homes.get(account.id)).map(({ id }) => id))
    return found
  }

  /** @throws if a region that may have the key does not answer. */
  async #findElsewhere(secretHash: string): Promise<KeyRecord | undefined> {
    const { keys, regions } = this.#options
    const answers = await Promise.allSettled(this.#askers.map((asker) => asker.ask(secretHash)))
    for (const [i, answer] of answers.entries()) {
      const { name = '' } = regions[i]?.exchange ?? {}
      if (answer.status !== 'fulfilled' || !answer.value) continue
      if (!(await this.#copy(name, answer.value))) continue
      const { key, account } = answer.value.key
      this.#homes.note(account.id, name)
      this.#noteUse([key.id])
      return keys.find(secretHash)
    }
    const failed = answers.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    return undefined
  }

  /** Copies a key anew, if its home answers. */
  async #confirm(home: string, secretHash: string): Promise<'copied' | 'gone' | 'away'> {
    const { regions } = this.#options
    const at = regions.findIndex(({ exchange }) => exchange.name === home)
    const asker = this.#askers[at]
    if (!asker || regions[at]?.exchange.away) return 'away'
    let found: Found | undefined
    try {
      found = await asker.ask(secretHash)
    } catch {
      return 'away'
    }
    // Its row goes with the next round.
    if (!found) return 'gone'
    await this.#copy(home, found)
    return 'copied'
  }

  /** Returns whether it is copied. */
  async #copy(home: string, { key, budgets }: Found): Promise<boolean> {
    const { mirrors, onCopy } = this.#options
    const [copied] = await mirrors.copy(home, [key], budgets)
    if (copied) await onCopy()
    return copied !== undefined
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
  #waiting = new Map<string, PromiseWithResolvers<Found | undefined>>()
  #asking = false

  constructor(region: OtherRegion) {
    this.#region = region
  }

  /** Returns the key of a secret, and its account's budgets. Rejects if the region does not answer, or too many wait. */
  ask(secretHash: string): Promise<Found | undefined> {
    const known = this.#waiting.get(secretHash)
    if (known) return known.promise
    if (this.#waiting.size >= MAX_WAITING)
      return Promise.reject(new Error(`region ${this.#region.exchange.name} is asked for too many keys`))
    const asked = Promise.withResolvers<Found | undefined>()
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

  async #answer(asked: ReadonlyMap<string, PromiseWithResolvers<Found | undefined>>): Promise<void> {
    const { exchange, store } = this.#region
    try {
      if (exchange.away) throw new Error(`region ${exchange.name} is away`)
      const hashes = [...asked.keys()]
      const [found, budgets] = await exchange.ask(() =>
        Promise.all([store.keysBySecret(hashes), store.budgetsBySecret(hashes)]),
      )
      const bySecret = new Map<string, Found>()
      // Another key may have been given the secret before this one's current one, which comes last.
      for (const name of ['previous_hash', 'secret_hash'] as const)
        for (const key of found) bySecret.set(key.key[name] ?? '', { key, budgets })
      for (const [hash, { resolve }] of asked) resolve(bySecret.get(hash))
    } catch (error) {
      for (const { reject } of asked.values()) reject(error)
    }
  }
}

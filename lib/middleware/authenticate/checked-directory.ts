import type { KeyDirectory, KeyRecord } from '../../core/key-directory/index.ts'
import { within } from '../../core/timing/index.ts'

type Found = KeyRecord | undefined

/** A directory of the app whose answers are checked: any promise is one, and what is no record fails the look-up. */
export class CheckedDirectory implements KeyDirectory {
  readonly #directory: KeyDirectory
  readonly #storeTimeoutMs: number | undefined

  /** @param storeTimeoutMs how long the directory may take to answer, in milliseconds; left out where its user bounds that. */
  constructor(directory: KeyDirectory, storeTimeoutMs?: number) {
    this.#directory = directory
    this.#storeTimeoutMs = storeTimeoutMs
  }

  find(secretHash: string): Found | Promise<Found> {
    const answer: unknown = this.#directory.find(secretHash)
    if (typeof (answer as PromiseLike<unknown> | undefined)?.then !== 'function') return recordIn(answer)
    const found = Promise.resolve(answer as PromiseLike<unknown>).then(recordIn)
    const storeTimeoutMs = this.#storeTimeoutMs
    if (storeTimeoutMs === undefined) return found
    return within(storeTimeoutMs, found, () => {
      throw new Error(`the key directory has not answered for ${storeTimeoutMs} ms`)
    })
  }
}

/** @throws TypeError if the answer of a directory is neither a record nor undefined. */
function recordIn(answer: unknown): Found {
  if (answer === undefined) return undefined
  const { id, account, limits } = (answer ?? {}) as Partial<KeyRecord>
  if (typeof id === 'string' && typeof account?.id === 'string' && account.limits && limits)
    return answer as KeyRecord
  throw new TypeError('authenticate: the answer of "keys" is no record of a key')
}

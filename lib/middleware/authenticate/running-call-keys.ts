import type { KeyWatch, OpenCall } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import type { KeyDirectory, KeyRecord } from '../../core/key-directory/index.ts'
import { within } from '../../core/timing/index.ts'

/** A running call that ends with its key. */
interface RunningCall {
  readonly call: OpenCall
  readonly end: (error: GatewayError) => void
  /** The index in the list of running calls; -1 once it is over. */
  place: number
}

/** Returns why a key does not admit a call at a time; undefined if it does. */
type Check = (call: OpenCall, record: KeyRecord | undefined, at: number) => GatewayError | undefined

/** A key that ends is noticed after this long and one answer of the directory. */
const POLL_MS = 2000
/** How many keys a directory without `findAll` is asked for at a time. */
const AT_A_TIME = 20

/**
 * Ends running calls when their key is deleted, disabled, rotated or has expired, or no longer admits them for another
 * reason. Every other second, one question to the directory covers all keys in use here, however many calls have them.
 * While the directory is unreachable, calls go on, and end by what is known of their keys.
 */
export class RunningCallKeys implements KeyWatch {
  readonly #directory: KeyDirectory
  readonly #storeTimeoutMs: number
  readonly #check: Check
  /** A list, not a Set: V8 keeps what has left a Set alive through the tables that the Set has outgrown. */
  readonly #running: RunningCall[] = []
  /** The keys in use, as the directory last returned them. */
  #known: ReadonlyMap<string, KeyRecord> = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(directory: KeyDirectory, storeTimeoutMs: number, check: Check) {
    this.#directory = directory
    this.#storeTimeoutMs = storeTimeoutMs
    this.#check = check
  }

  follow(call: OpenCall, end: (error: GatewayError) => void): void {
    const running: RunningCall = { call, end, place: this.#running.length }
    this.#running.push(running)
    call.onEnd('key watch', () => this.#leave(running))
    this.#timer ??= setTimeout(() => void this.#checkKeys(), POLL_MS).unref()
  }

  #leave(running: RunningCall): void {
    const { place } = running
    if (place < 0) return
    running.place = -1
    const last = this.#running.pop() as RunningCall
    if (last === running) return
    this.#running[place] = last
    last.place = place
  }

  async #checkKeys(): Promise<void> {
    const hashes = new Set<string>()
    for (const { call } of this.#running) if (call.secretHash !== null) hashes.add(call.secretHash)
    const answered = hashes.size > 0 && (await this.#ask([...hashes]))
    // A call that began meanwhile has its turn next time, because nobody has asked for its key.
    for (const running of [...this.#running]) {
      if (running.place >= 0 && hashes.has(running.call.secretHash ?? '')) this.#endIfOver(running, answered)
    }
    this.#timer =
      this.#running.length === 0 ? undefined : setTimeout(() => void this.#checkKeys(), POLL_MS).unref()
  }

  #endIfOver(running: RunningCall, answered: boolean): void {
    const { call, end } = running
    try {
      const record = this.#known.get(call.secretHash ?? '')
      // Of a key that is not known yet, nobody could have reported an end.
      const error = record || answered ? this.#check(call, record, Date.now()) : undefined
      if (!error) return
      this.#leave(running)
      end(error)
    } catch (error) {
      call.logger.error({ err: error, requestId: call.id }, 'a call could not be ended with its key')
    }
  }

  /** Asks the directory. If it does not answer, what was known stays. Returns whether it has answered. */
  async #ask(hashes: readonly string[]): Promise<boolean> {
    try {
      const late = (): never => {
        throw new Error('the key directory does not answer')
      }
      this.#known = await within(this.#storeTimeoutMs, this.#findAll(hashes), late)
      return true
    } catch {
      // The failure is reported by new requests, whose keys are looked up as well.
      return false
    }
  }

  async #findAll(hashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>> {
    if (this.#directory.findAll) return this.#directory.findAll(hashes)
    const found = new Map<string, KeyRecord>()
    for (let i = 0; i < hashes.length; i += AT_A_TIME) {
      const some = hashes.slice(i, i + AT_A_TIME)
      const records = await Promise.all(some.map((hash) => this.#directory.find(hash)))
      for (const [j, record] of records.entries()) if (record) found.set(some[j] as string, record)
    }
    return found
  }
}

import { networkOf } from '../../core/client-address/index.ts'

/** Wrong tokens of an address that are answered at once, each minute. */
const FREE = 20
const WINDOW_MS = 60_000
/** The time between two answers to those beyond them. */
const EACH_MS = 500
const MAX_WAIT_MS = 5000
const MAX_ADDRESSES = 10_000
/** Callers without an address count as one. */
const UNKNOWN = 'unknown'

interface Guesser {
  readonly since: number
  wrong: number
  /** When the last of its waiting answers goes out. */
  busyUntil: number
}

/** Counts wrong tokens by address, and returns how long their answers wait, so that tokens cannot be guessed. */
export class WrongTokens {
  readonly #guessers = new Map<string, Guesser>()
  #count = 0

  /** The number of wrong tokens since the start. */
  get count(): number {
    return this.#count
  }

  /** Returns how long an address that has too many answers waiting must stay away, in milliseconds; 0 if it need not. */
  pauseOf(ip: string | null): number {
    const waits = (this.#guessers.get(networkOf(ip ?? UNKNOWN))?.busyUntil ?? 0) - performance.now()
    return waits > MAX_WAIT_MS ? waits : 0
  }

  /** Notes a wrong token. Returns how long its answer waits, and whether it is the first of this address in a minute. */
  note(ip: string | null): { waitMs: number; isFirst: boolean } {
    this.#count++
    const guesser = this.#guesserAt(networkOf(ip ?? UNKNOWN))
    guesser.wrong++
    if (guesser.wrong <= FREE) return { waitMs: 0, isFirst: guesser.wrong === 1 }
    const now = performance.now()
    guesser.busyUntil = Math.max(now, guesser.busyUntil) + EACH_MS
    return { waitMs: guesser.busyUntil - now, isFirst: false }
  }

  #guesserAt(network: string): Guesser {
    const now = performance.now()
    const known = this.#guessers.get(network)
    if (known && now - known.since < WINDOW_MS) return known
    const made = { since: now, wrong: 0, busyUntil: known?.busyUntil ?? 0 }
    this.#guessers.delete(network)
    this.#guessers.set(network, made)
    const [oldest] = this.#guessers.keys()
    if (this.#guessers.size > MAX_ADDRESSES && oldest !== undefined) this.#guessers.delete(oldest)
    return made
  }
}

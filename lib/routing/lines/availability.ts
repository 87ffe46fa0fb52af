import type { Circuit } from './circuit.ts'

/**
 * Whether calls succeed on a line, as this process sees it:
 *
 * - `down`: no call succeeds on any of its models that are in use, whatever the reason;
 * - `up`: not down, and a call has succeeded in the last two minutes;
 * - `unknown`: neither.
 *
 * Circuits say something else. One that is open is half open a moment later, and opens when half of the calls fail.
 */
export type Availability = 'up' | 'down' | 'unknown'

/** A model that no call has asked for in this time is not in use. */
const IN_USE_MS = 120_000
/** So many failures in a row are an outage, or as many as open the circuit if these are fewer. */
const ENOUGH_FAILURES = 5

/** The attempts on a line or a model that failed since the last one that succeeded. */
export class FailureStreak {
  #failures = 0
  /** The account of all failures; undefined if there are several. */
  #account: string | undefined
  #brokeOff = false
  #failure: string | undefined
  #servedAt = -Infinity

  /** When an attempt last succeeded, on the monotonic clock. */
  get servedAt(): number {
    return this.#servedAt
  }

  get failures(): number {
    return this.#failures
  }

  /** The only account whose attempts failed; undefined if there are several. */
  get account(): string | undefined {
    return this.#account
  }

  /** Why the last attempt failed; undefined after one that succeeded. */
  get failure(): string | undefined {
    return this.#failure
  }

  /** Notes the first output of an answer. It is no success where answers break off afterwards. */
  began(): void {
    if (!this.#brokeOff) this.served()
  }

  served(): void {
    this.#failures = 0
    this.#failure = undefined
    this.#brokeOff = false
    this.#servedAt = performance.now()
  }

  /** @param failure why, in words that do not quote the request. */
  failed(account: string, failure: string): void {
    this.#failure = failure
    this.#account = this.#failures === 0 || this.#account === account ? account : undefined
    this.#failures++
  }

  /** Notes an answer that broke off after its first output. */
  brokeOff(account: string): void {
    this.#brokeOff = true
    this.failed(account, 'the answer broke off')
  }
}

/** A line or a model, whose attempts pass a circuit. */
interface Watched {
  readonly circuit: Circuit
  readonly streak: FailureStreak
}

/** Returns whether calls succeed on a line. A line that is switched off is neither up nor down. */
export function availabilityOf(
  line: Watched & { readonly enabled: boolean; readonly models: ReadonlyMap<string, Watched> },
): Availability {
  if (!line.enabled) return 'unknown'
  const inUse = [...line.models.values()].filter(({ circuit }) => isInUse(circuit))
  if (isFailing(line) || (inUse.length > 0 && inUse.every(isFailing))) return 'down'
  return inUse.some(({ streak }) => streak.servedAt > performance.now() - IN_USE_MS) ? 'up' : 'unknown'
}

/** Whether a line or a model was asked for lately. While its circuit is open to all, no call can ask. */
export function isInUse(circuit: Circuit): boolean {
  return circuit.isOpenToAll || circuit.isUsedSince(performance.now() - IN_USE_MS)
}

/** The failures of one account do not count while others use it, too. */
function isFailing({ circuit, streak: { failures, account } }: Watched): boolean {
  if (failures < Math.min(circuit.minimumCalls, ENOUGH_FAILURES) || !isInUse(circuit)) return false
  return account === undefined || !circuit.isUsedSince(performance.now() - IN_USE_MS, account)
}

/** Joins what several processes see: a line is down if one sees it down and it serves none. */
export function joinAvailability(all: readonly Availability[]): Availability {
  if (all.includes('up')) return 'up'
  return all.includes('down') ? 'down' : 'unknown'
}

import { greatest, least, MAX_AMOUNT } from '../../core/catalog/money.ts'

/** A lease should hold the spending of this time, in seconds. */
const LEASE_SECONDS = 10
/** An amount that was not needed for this many ticks is returned. */
const WINDOW_TICKS = 10
/** For a new wallet, this many further calls like the last one are expected. */
const AT_LEAST_CALLS = 4n
/** Each time that other processes were faster, half as much is asked for, down to this power of two. */
const MAX_LOST_RACES = 4n

/** The amounts in a lease, in nano-units. */
interface Holding {
  readonly free: bigint
  readonly granted: bigint
}

/**
 * Decides how much of a wallet a process should hold, and so what to ask the ledger for: some seconds of its
 * spending, and what its calls hold at once. Amounts are nano-units.
 */
export class TopUpPolicy {
  /** The highest cost of the last call. */
  lastAmount = 0n
  /** The spending since the last tick. */
  spent = 0n
  /** In nano-units per second. */
  #rate = 0
  #tickedAt: number
  /** The most that was reserved and the least that was free, in this tick and in earlier ones. */
  #peak = 0n
  #least: bigint | undefined
  readonly #peaks: [bigint, ...bigint[]] = [0n]
  readonly #leasts: bigint[] = []
  #target = 0n
  /** How often in a row other processes took the available amount first. */
  #lostRaces = 0n

  constructor(now: number) {
    this.#tickedAt = now
  }

  /** Records that a call was admitted. */
  admitted(amount: bigint, reserved: bigint, free: bigint): void {
    this.lastAmount = amount
    if (reserved > this.#peak) this.#peak = reserved
    if (this.#least === undefined || free < this.#least) this.#least = free
  }

  /** Updates the estimates with the last second or so. */
  tick(now: number, reserved: bigint, free: bigint): void {
    const seconds = (now - this.#tickedAt) / 1000
    if (seconds <= 0) return
    const rate = Number(this.spent) / seconds
    // A rise of the spending is applied faster than a fall.
    this.#rate += (rate - this.#rate) * (1 - Math.exp(-seconds / (rate > this.#rate ? 2 : LEASE_SECONDS)))
    this.spent = 0n
    this.#tickedAt = now
    keep(this.#peaks, greatest(this.#peak, reserved))
    keep(this.#leasts, least(free, this.#least ?? free))
    this.#peak = reserved
    this.#least = undefined
    this.#target = BigInt(Math.round(this.#rate * LEASE_SECONDS)) + greatest(...this.#peaks) * 2n
  }

  /** Returns the amount to add in the background; 0n if it is not worth an operation. */
  missing(granted: bigint): bigint {
    const target = this.#wanted
    const missing = target - granted
    return missing * 4n > target ? bounded(missing) : 0n
  }

  /** Returns the amount to give back: what was not needed for ten seconds; 0n if it is not worth an operation. */
  surplus({ free, granted }: Holding): bigint {
    if (this.#leasts.length < WINDOW_TICKS) return 0n
    const surplus = least(granted - this.#wanted, ...this.#leasts)
    return surplus * 4n > granted ? least(surplus, free) : 0n
  }

  /** Restarts the observation of what is needed, after something was given back. */
  restart(): void {
    this.#leasts.length = 0
  }

  /**
   * Returns what to ask for while calls wait: at least the amount that all of them lack, or as many of them as can be
   * served. The ledger decides how much it adds beyond that.
   *
   * @param amounts of the calls, in the order in which they are served.
   * @param available the amount that others leave; undefined if it is unknown.
   * @param isScarce whether nothing should be held that is not needed now.
   */
  takeFor(
    amounts: readonly bigint[],
    { free, granted }: Holding,
    available: bigint | undefined,
    isScarce: boolean,
  ): { kind: 'take'; need: bigint; want: bigint } {
    const all = amounts.reduce((sum, amount) => sum + amount, 0n)
    let served = all
    if (available !== undefined) {
      const reach = free + (available >> this.#lostRaces)
      served = amounts.reduce((sum, amount) => (sum + amount <= reach ? sum + amount : sum), 0n)
      if (served === 0n) served = amounts[0] ?? 0n
    }
    const need = served - free
    const want = greatest(need, all - free, (isScarce ? 0n : this.#wanted) - granted)
    return { kind: 'take', need: bounded(need), want: bounded(want) }
  }

  /** Records how much of the needed amount the ledger moved. */
  taken(moved: bigint, need: bigint): void {
    this.#lostRaces = moved === 0n && need > 0n ? least(this.#lostRaces + 1n, MAX_LOST_RACES) : 0n
  }

  /** The amount that should be held in all. */
  get #wanted(): bigint {
    return greatest(this.#target, this.spent * 2n, this.#peak * 2n, this.lastAmount * AT_LEAST_CALLS)
  }
}

function keep(kept: bigint[], value: bigint): void {
  kept.push(value)
  if (kept.length > WINDOW_TICKS) kept.shift()
}

/** Limits an amount to the range of a ledger. */
function bounded(amount: bigint): bigint {
  return least(greatest(amount, 0n), MAX_AMOUNT)
}

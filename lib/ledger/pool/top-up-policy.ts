import { LARGEST_AMOUNT } from '../amounts.ts'

/** What is spent in this time is what a lease should hold, in seconds. */
const SPEND_SECONDS = 10
/** What was not needed for that many ticks is not needed. */
const WINDOW_TICKS = 10
/** A wallet just seen is expected to see that many more calls such as the last. */
const AT_LEAST_CALLS = 4n
/** Each time that others were faster, half as much is asked for, down to this power of it. */
const MOST_BEATEN = 4n

/** What a lease holds, in nano-units. */
interface Holding {
  readonly free: bigint
  readonly granted: bigint
}

/**
 * Says how much a process should hold of a wallet, and so what to ask the ledger for: about ten seconds of what it
 * spends, and what its calls hold at once. Amounts are nano-units.
 */
export class TopUpPolicy {
  /** The most that the last call could cost. */
  lastAmount = 0n
  /** What was spent since the last tick. */
  spent = 0n
  /** Nano-units per second. */
  #rate = 0
  #tickedAt: number
  /** The most that was reserved, and the least that was free, in this tick and in those before. */
  #peak = 0n
  #least: bigint | undefined
  readonly #peaks: [bigint, ...bigint[]] = [0n]
  readonly #leasts: bigint[] = []
  #target = 0n
  /** How often in a row others were faster to take what was available. */
  #beaten = 0n

  constructor(now: number) {
    this.#tickedAt = now
  }

  /** Notes that a call was admitted. */
  admitted(amount: bigint, reserved: bigint, free: bigint): void {
    this.lastAmount = amount
    if (reserved > this.#peak) this.#peak = reserved
    if (this.#least === undefined || free < this.#least) this.#least = free
  }

  /** Looks at what the last second or so has needed. */
  tick(now: number, reserved: bigint, free: bigint): void {
    const seconds = (now - this.#tickedAt) / 1000
    if (seconds <= 0) return
    const rate = Number(this.spent) / seconds
    // What is spent faster is believed sooner than what is spent slower.
    this.#rate += (rate - this.#rate) * (1 - Math.exp(-seconds / (rate > this.#rate ? 2 : SPEND_SECONDS)))
    this.spent = 0n
    this.#tickedAt = now
    keep(this.#peaks, greatest(this.#peak, reserved))
    keep(this.#leasts, least(free, this.#least ?? free))
    this.#peak = reserved
    this.#least = undefined
    this.#target = BigInt(Math.round(this.#rate * SPEND_SECONDS)) + greatest(...this.#peaks) * 2n
  }

  /** What is to be added in the background to what is held, if it is worth a call. */
  lacks(granted: bigint): bigint {
    const target = this.#wanted
    const lacks = target - granted
    return lacks * 4n > target ? bounded(lacks) : 0n
  }

  /** What of it is to go back, if it is worth a call: what was not needed for ten seconds. */
  spare({ free, granted }: Holding): bigint {
    if (this.#leasts.length < WINDOW_TICKS) return 0n
    const spare = least(granted - this.#wanted, ...this.#leasts)
    return spare * 4n > granted ? least(spare, free) : 0n
  }

  /** Something was given back: from here on it is seen anew what is not needed. */
  restart(): void {
    this.#leasts.length = 0
  }

  /**
   * What to ask for when calls wait: the ledger has to give as much as all of them lack, or as many of them as can be
   * served at all. What is wanted beyond that is for the ledger to decide.
   *
   * @param amounts of the calls, in the order in which they are served.
   * @param available what others leave; undefined where that is not known.
   * @param isPoor whether nothing is to be held that is not needed now.
   */
  takeFor(
    amounts: readonly bigint[],
    { free, granted }: Holding,
    available: bigint | undefined,
    isPoor: boolean,
  ): { kind: 'take'; need: bigint; want: bigint } {
    const all = amounts.reduce((sum, amount) => sum + amount, 0n)
    let served = all
    if (available !== undefined) {
      const reach = free + (available >> this.#beaten)
      served = amounts.reduce((sum, amount) => (sum + amount <= reach ? sum + amount : sum), 0n)
      if (served === 0n) served = amounts[0] ?? 0n
    }
    const need = served - free
    const want = greatest(need, all - free, (isPoor ? 0n : this.#wanted) - granted)
    return { kind: 'take', need: bounded(need), want: bounded(want) }
  }

  /** Notes what the ledger has moved of what was needed. */
  taken(moved: bigint, need: bigint): void {
    this.#beaten = moved === 0n && need > 0n ? least(this.#beaten + 1n, MOST_BEATEN) : 0n
  }

  /** What should be held in all. */
  get #wanted(): bigint {
    return greatest(this.#target, this.spent * 2n, this.#peak * 2n, this.lastAmount * AT_LEAST_CALLS)
  }
}

function keep(kept: bigint[], value: bigint): void {
  kept.push(value)
  if (kept.length > WINDOW_TICKS) kept.shift()
}

/** An amount that a ledger takes. */
function bounded(amount: bigint): bigint {
  return least(greatest(amount, 0n), LARGEST_AMOUNT)
}

function least(first: bigint, ...others: readonly bigint[]): bigint {
  let least = first
  for (const each of others) if (each < least) least = each
  return least
}

function greatest(first: bigint, ...others: readonly bigint[]): bigint {
  let greatest = first
  for (const each of others) if (each > greatest) greatest = each
  return greatest
}

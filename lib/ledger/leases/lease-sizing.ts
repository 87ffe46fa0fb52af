import { greatest, least } from './lease-demand.ts'

/** What is spent in this time is what a lease should hold, in seconds. */
const SPEND_SECONDS = 10
/** What was not needed for that many ticks is not needed. */
const WINDOW_TICKS = 10
/** A wallet just seen is expected to see that many more calls such as the last. */
const AT_LEAST_CALLS = 4n

/** How much a process should hold of a wallet: about ten seconds of what it spends, and what its calls hold at once. */
export class LeaseSizing {
  /** Nano-units per second. */
  #rate = 0
  #spent = 0n
  #tickedAt: number
  #last = 0n
  /** The most that was reserved, and the least that was free, in this tick and in those before. */
  #peak = 0n
  #least: bigint | undefined
  readonly #peaks: [bigint, ...bigint[]] = [0n]
  readonly #leasts: bigint[] = []
  #target = 0n

  constructor(now: number) {
    this.#tickedAt = now
  }

  /** Of the last call, in nano-units. */
  get lastAmount(): bigint {
    return this.#last
  }

  /** What should be held in all, in nano-units. */
  get target(): bigint {
    return greatest(this.#target, this.#spent * 2n, this.#peak * 2n, this.#last * AT_LEAST_CALLS)
  }

  /** A call was admitted. */
  admitted(amount: bigint, reserved: bigint, free: bigint): void {
    this.#last = amount
    if (reserved > this.#peak) this.#peak = reserved
    if (this.#least === undefined || free < this.#least) this.#least = free
  }

  /** A call was settled. */
  spend(amount: bigint): void {
    this.#spent += amount
  }

  /** About once a second. */
  tick(now: number, reserved: bigint, free: bigint): void {
    const seconds = (now - this.#tickedAt) / 1000
    if (seconds <= 0) return
    const rate = Number(this.#spent) / seconds
    // What is spent faster is believed sooner than what is spent slower.
    this.#rate += (rate - this.#rate) * (1 - Math.exp(-seconds / (rate > this.#rate ? 2 : SPEND_SECONDS)))
    this.#spent = 0n
    this.#tickedAt = now
    keep(this.#peaks, greatest(this.#peak, reserved))
    keep(this.#leasts, least(free, this.#least ?? free))
    this.#peak = reserved
    this.#least = undefined
    this.#target = BigInt(Math.round(this.#rate * SPEND_SECONDS)) + greatest(...this.#peaks) * 2n
  }

  /** What is to be added to what is held, if it is worth a call. */
  lacks(granted: bigint): bigint {
    const { target } = this
    const lacks = target - granted
    return lacks * 4n > target ? lacks : 0n
  }

  /** What of it is to go back, if it is worth a call: what was not needed for ten seconds. */
  spare(granted: bigint): bigint {
    if (this.#leasts.length < WINDOW_TICKS) return 0n
    const spare = least(granted - this.target, ...this.#leasts)
    return spare * 4n > granted ? spare : 0n
  }

  /** Something was given back: from here on it is seen anew what is not needed. */
  restart(): void {
    this.#leasts.length = 0
  }
}

function keep(kept: bigint[], value: bigint): void {
  kept.push(value)
  if (kept.length > WINDOW_TICKS) kept.shift()
}

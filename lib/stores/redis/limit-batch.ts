import type { Count, Demand, Limit, Verdict } from '../../middleware/rate-limit/index.ts'

/** A demand that waits for its verdict. */
export interface Asked {
  readonly demand: Demand
  readonly resolve: (verdict: Verdict) => void
  readonly reject: (error: unknown) => void
}

/** The reply of `DECIDE`: Redis's time, a string with ioredis's `stringNumbers`, and the verdicts as a JSON list. */
export type BatchReply = readonly [now: number | string, list: string]

const PROBED = { level: 'probe', subject: 'probe', max: 1, cost: 1 } as const

/**
 * A demand that is admitted, and refused when it is asked again: so the script writes everything that it writes for callers, a
 * counter, a slot and a wait. It fails where those would fail.
 */
const PROBE: Demand = {
  id: 'probe',
  sender: 'probe',
  windowMs: 1,
  charges: [{ ...PROBED, kind: 'rpm', key: 'rpm:probe' }],
  slots: [{ ...PROBED, kind: 'concurrency', key: 'concurrency:probe' }],
}

/** The most demands in one batch. Redis does nothing else while a script runs. */
const MAX_DEMANDS = 100
/** The most returned slots and ended calls in one batch. Lua copies them to a stack of bounded size. */
const MAX_ENDS = 1000

/** The demands and returned slots of one turn of the event loop, for one run of the script. */
export class LimitBatch {
  readonly asked: Asked[] = []
  /** The ids of returned slots, by the key of their set. */
  readonly returned = new Map<string, string[]>()
  /** Resolves when Redis has answered the batch or is no longer waited for. */
  readonly answered: Promise<void>
  readonly tellAnswered: () => void
  /** The keys of the batch as they were sent. */
  keys: readonly string[] = []
  readonly #ended = new Map<string, number>()
  #ends = 0
  #probes: readonly Demand[] = []

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.answered = promise
    this.tellAnswered = resolve
  }

  /** Whether the batch takes no more. */
  get full(): boolean {
    return this.asked.length >= MAX_DEMANDS || this.#ends >= MAX_ENDS
  }

  giveBack(key: string, id: string): void {
    this.#ends++
    const ids = this.returned.get(key)
    if (ids) ids.push(id)
    else this.returned.set(key, [id])
  }

  ended(sender: string): void {
    this.#ends++
    this.#ended.set(sender, (this.#ended.get(sender) ?? 0) + 1)
  }

  /** Adds demands of nobody, whose verdicts say nothing but that Redis can decide on demands. */
  probe(): void {
    this.#probes = [PROBE, PROBE]
    this.giveBack('concurrency:probe', PROBE.id)
  }

  /** Returns the keys of `DECIDE`, and its arguments from the number of counters on. */
  encode(prefix: string): { keys: readonly string[]; args: (number | string)[] } {
    const [counters, sets, waits] = [
      new Places(`${prefix}:`),
      new Places(`${prefix}:`),
      new Places(`${prefix}:wait:`),
    ]
    const list: (number | string)[] = [this.returned.size]
    for (const [key, ids] of this.returned) {
      list.push(sets.of(key), ids.length)
      for (const id of ids) list.push(id)
    }
    list.push(this.#ended.size)
    for (const [sender, calls] of this.#ended) list.push(waits.of(sender), calls)
    const demands = [...this.asked.map(({ demand }) => demand), ...this.#probes]
    list.push(demands.length)
    for (const { id, sender, windowMs, charges, slots } of demands) {
      list.push(id, waits.of(sender), windowMs, charges.length, slots.length)
      for (const { key, cost, max } of charges) list.push(counters.of(key), cost, max)
      for (const { key, max } of slots) list.push(sets.of(key), max)
    }
    this.keys = [...counters.keys, ...sets.keys, ...waits.keys]
    return { keys: this.keys, args: [counters.keys.length, sets.keys.length, JSON.stringify(list)] }
  }
}

/** A list of different keys, and the place of each. */
class Places {
  readonly keys: string[] = []
  readonly #prefix: string
  readonly #known = new Map<string, number>()

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Returns the place of a key, from 1 as Lua counts. */
  of(name: string): number {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const place = this.keys.push(this.#prefix + name)
    this.#known.set(name, place)
    return place
  }
}

/**
 * Calls `tell` with the verdict on each demand of a batch, in their order, or `undecided` with the place of the key, among
 * those of the batch from 1, that does not hold what it should.
 */
export function readVerdicts(
  asked: readonly Asked[],
  [, list]: BatchReply,
  tell: (each: Asked, verdict: Verdict) => void,
  undecided: (each: Asked, place: number) => void,
): void {
  const numbers = JSON.parse(list) as number[]
  let at = 0
  for (const each of asked) {
    const { charges, slots } = each.demand
    const refusing = numbers[at] as number
    const waitMs = numbers[at + 1] as number
    at += 2
    const counts: Count[] = []
    for (let i = 0; i < charges.length; i++, at += 2)
      counts.push({ used: numbers[at] as number, resetMs: numbers[at + 1] as number })
    if (refusing < 0) undecided(each, waitMs)
    else tell(each, { refusedBy: limitAt(charges, slots, refusing), waitMs, counts })
  }
}

/** Returns the limit at a place. The script counts from 1, counters first. */
function limitAt(charges: readonly Limit[], slots: readonly Limit[], place: number): Limit | undefined {
  if (place === 0) return undefined
  return charges[place - 1] ?? slots[place - 1 - charges.length]
}

import { Distance } from '../../../core/store-guard/index.ts'

export interface GroupsOptions<Asked, Answer> {
  /** Most groups under way at a time. */
  readonly atOnce: number
  /** Asks for a group in one round trip. Resolves to the answers, in its order. */
  readonly ask: (group: readonly Asked[]) => Promise<readonly Answer[]>
}

interface Waiting<Asked, Answer> {
  readonly asked: Asked
  resolve(answer: Answer): void
  reject(error: unknown): void
}

type Group<Asked, Answer> = readonly Waiting<Asked, Answer>[]

const MAX_GROUP = 200
/** Into how many parts a group is divided that has failed. */
const PARTS = 8
/** Shorter pauses between groups are left out: a timer is not that exact. */
const MIN_PAUSE_MS = 1

/**
 * Asks a database for many things in few round trips. One that comes while few groups are under way goes at once; while
 * as many are as may be, others wait, and go as one. The groups are spread evenly over a round trip, so that one that
 * comes now waits for a part of it only.
 *
 * A request that cannot be done fails alone: a group that the database refuses is divided.
 */
export class Groups<Asked, Answer> {
  readonly #options: GroupsOptions<Asked, Answer>
  readonly #distance = new Distance()
  #waiting: Waiting<Asked, Answer>[] = []
  /** The parts of groups that have failed. */
  readonly #parts: Group<Asked, Answer>[] = []
  #underWay = 0
  #leftAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: GroupsOptions<Asked, Answer>) {
    this.#options = options
  }

  /** Whether nothing waits and nothing is under way. */
  get idle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0
  }

  /** @throws what `ask` rejects with, of a group that cannot be divided. */
  run(asked: Asked): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#waiting.push({ asked, resolve, reject })
    this.#leave()
    return promise
  }

  /** Has the next groups leave, as far as they may now. */
  #leave(): void {
    while (this.#underWay < this.#options.atOnce) {
      const part = this.#parts.shift()
      if (part) {
        void this.#ask(part)
        continue
      }
      if (this.#waiting.length === 0 || this.#pauses()) return
      void this.#ask(this.#waiting.splice(0, MAX_GROUP))
    }
  }

  /** Whether the next group waits a moment, since another one has just left. */
  #pauses(): boolean {
    if (this.#timer) return true
    if (this.#underWay === 0) return false
    const spread = this.#distance.ms / this.#options.atOnce
    const pause = spread - (performance.now() - this.#leftAt)
    if (pause < MIN_PAUSE_MS) return false
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#leave()
    }, pause)
    return true
  }

  async #ask(group: Group<Asked, Answer>): Promise<void> {
    this.#underWay++
    const leftAt = performance.now()
    this.#leftAt = leftAt
    try {
      const answers = await this.#options.ask(group.map(({ asked }) => asked))
      this.#distance.answered(performance.now() - leftAt)
      for (const [i, { resolve }] of group.entries()) resolve(answers[i] as Answer)
    } catch (error) {
      if (group.length > 1 && mayBeOfOne(error)) this.#divide(group)
      else for (const { reject } of group) reject(error)
    }
    this.#underWay--
    this.#leave()
  }

  #divide(group: Group<Asked, Answer>): void {
    const size = Math.ceil(group.length / PARTS)
    for (let at = 0; at < group.length; at += size) this.#parts.push(group.slice(at, at + size))
  }
}

/** Constraint failures of SQLite: the lower byte of its result code. */
const SQLITE_CONSTRAINT = 19
/** Postgres is not reached, is out of a resource, is being stopped, or is broken. */
const OF_ALL = new Set(['08', '53', '57', '58', 'XX'])

/** Whether a statement may have failed because of one of its rows. */
function mayBeOfOne(error: unknown): boolean {
  if (error instanceof RangeError) return true
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return (errcode & 0xff) === SQLITE_CONSTRAINT
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !OF_ALL.has(code.slice(0, 2))
}

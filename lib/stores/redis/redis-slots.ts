import { Batcher, MemorySlots, type SlotStore } from '../../core/limit-store/index.ts'
import { BrokenRecord, type StoreGuard } from '../../core/store-guard/index.ts'
import { within } from '../../core/timing/index.ts'
import { type RedisClient, type RedisScript, redisScript } from './redis-script.ts'

/**
 * Takes slots for some calls, or renews their leases. Slots whose leases are over are free.
 *
 * KEYS: a sorted set of the ids that hold a slot, each with the end of its lease by Redis's own clock, in milliseconds.
 * ARGV: the length of a lease, then for each call the most slots and its id. Returns 1 for each one that holds a slot, else 0.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV[1])
local taken = redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
local answers, is_any = {}, false
for i = 2, #ARGV, 2 do
  local most, id = tonumber(ARGV[i]), ARGV[i + 1]
  local lease_end = redis.call('ZSCORE', KEYS[1], id)
  local is_new = not lease_end or tonumber(lease_end) <= now
  if is_new and taken >= most then
    answers[#answers + 1] = 0
  else
    if is_new then taken = taken + 1 end
    redis.call('ZADD', KEYS[1], now + lease, id)
    answers[#answers + 1] = 1
    is_any = true
  end
end
if not is_any then return answers end
-- The removal comes last: behind one, a Redis that is full would take everything.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
-- Another process may have longer leases.
redis.call('PEXPIRE', KEYS[1], math.max(lease, redis.call('PTTL', KEYS[1])))
return answers`

/** How soon slots are given back again that Redis refused to take back, in milliseconds. */
const AGAIN_MS = 1000

/** A maximum for slots that are taken in any case. */
const ANY_NUMBER = Number.MAX_SAFE_INTEGER

/** A call that asks for a slot. */
interface Asked {
  readonly id: string
  readonly max: number
}

/** The parts that {@link RedisSlots} works with. */
export interface RedisSlotsOptions {
  readonly redis: RedisClient
  readonly guard: StoreGuard
  readonly prefix: string
  readonly slotLeaseMs: number
  readonly timeoutMs: number
  /** Returns the error to report for one of a key. */
  readonly faultOf: (error: Error, key: string) => Error
}

/**
 * The slots of all processes on one Redis. This process renews the leases of its own slots while their calls run; those of a
 * killed process end by themselves. A renewal also takes the slots of calls that began while Redis was away, and gives back
 * those that could not be given back.
 */
export class RedisSlots implements SlotStore {
  readonly #options: RedisSlotsOptions
  readonly #take: RedisScript
  readonly #taking: Batcher<Asked, boolean>
  readonly #removing: Batcher<string, void>
  /** The slots of the calls that run in this process. */
  readonly #held = new MemorySlots()
  /** The slots that Redis has, or may have. */
  readonly #known = new MemorySlots()
  /** The slots that calls wait for: a renewal leaves them alone. */
  readonly #awaited = new MemorySlots()
  /** The slots that are being given back: Redis has been asked, and has not answered. */
  readonly #leaving = new MemorySlots()
  /** The releases that are under way. */
  readonly #releasing = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  /** Gives back again soon. */
  #again: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: RedisSlotsOptions) {
    this.#options = options
    const { redis, slotLeaseMs } = options
    this.#take = redisScript(redis, 'gatewayTakeSlots', TAKE)
    this.#taking = new Batcher((key, asked) => this.#takeOf(key, slotLeaseMs, asked))
    this.#removing = new Batcher(async (key, ids) => {
      await this.#inKey(this.#keyOf(key), (name) => redis.zrem(name, ...ids))
      return ids.map(ignore)
    })
  }

  /** @throws StoreAway. Redis may have given the slot nevertheless, so a {@link release} must follow. */
  async acquire(key: string, id: string, max: number): Promise<boolean> {
    const { guard } = this.#options
    let isLate = false
    const take = async (): Promise<boolean> => {
      this.#known.hold(key, id)
      const isTaken = await this.#taking.ask(key, { id, max })
      if (!isTaken) this.#known.release(key, id)
      else if (isLate && !this.#held.has(key, id)) {
        // A cluster repeats commands, so that this one can come after the release.
        this.#known.hold(key, id)
        void this.#giveBack(key, id)
      }
      return isTaken
    }
    this.#awaited.hold(key, id)
    try {
      const isTaken = await guard.run(take)
      if (isTaken) this.hold(key, id)
      return isTaken
    } catch (error) {
      isLate = true
      throw error
    } finally {
      this.#awaited.release(key, id)
    }
  }

  hold(key: string, id: string): void {
    this.#held.hold(key, id)
    this.#keepRenewing()
  }

  release(key: string, id: string): Promise<void> | undefined {
    this.#held.release(key, id)
    return this.#known.has(key, id) ? this.#giveBack(key, id) : undefined
  }

  isFull(key: string, max: number): boolean {
    return this.#held.isFull(key, max)
  }

  /** Takes and gives back a slot of its own, to try whether Redis can do both. @throws StoreAway. */
  async probe(): Promise<void> {
    const { redis, guard } = this.#options
    await guard.run(async () => {
      await this.#takeOf(PROBE, 1000, [{ id: 'probe', max: ANY_NUMBER }])
      await redis.zrem(this.#keyOf(PROBE), 'probe')
    })
  }

  /** Makes Redis agree with the slots that this process holds. */
  renew(): void {
    const { guard, slotLeaseMs } = this.#options
    this.#giveBackAgain()
    for (const [key, holders] of this.#held.byKey()) {
      const ids = [...holders]
      const renewing = guard.run(() => {
        for (const id of ids) this.#known.hold(key, id)
        return this.#takeOf(
          key,
          slotLeaseMs,
          ids.map((id) => ({ id, max: ANY_NUMBER })),
        )
      })
      // The guard logs the outage, and the next renewal tries again.
      renewing.catch(ignore)
    }
    const [held] = this.#held.byKey()
    const [known] = this.#known.byKey()
    if (held || known) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Resolves when Redis has the slots that were given back, or does not answer. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#giveBackAgain()
    await Promise.all(this.#releasing)
    clearInterval(this.#timer)
    clearTimeout(this.#again)
  }

  #giveBackAgain(): void {
    const others = [this.#held, this.#awaited, this.#leaving]
    for (const [key, ids] of this.#known.byKey())
      for (const id of ids) if (!others.some((slots) => slots.has(key, id))) void this.#giveBack(key, id)
  }

  /**
   * Gives a slot back now or soon, after an outage or with a later renewal. Never rejects. It bypasses the guard, because a
   * Redis that is full does this and no more.
   */
  #giveBack(key: string, id: string): Promise<void> {
    const { guard, timeoutMs } = this.#options
    this.#keepRenewing()
    if (guard.away) return Promise.resolve()
    this.#leaving.hold(key, id)
    const removed = this.#removing
      .ask(key, id)
      .then(
        () => this.#known.release(key, id),
        (error: unknown) => {
          // Foreign contents of a key hold no slots.
          if (error instanceof BrokenRecord) this.#known.release(key, id)
          else this.#giveBackSoon()
        },
      )
      .finally(() => this.#leaving.release(key, id))
    const releasing = within(timeoutMs, removed, ignore).finally(() => this.#releasing.delete(releasing))
    this.#releasing.add(releasing)
    return releasing
  }

  /** A Redis that refuses writes may still answer that all slots are taken, so that no outage ends when it takes them again. */
  #giveBackSoon(): void {
    if (this.#isClosed) return
    this.#again ??= setTimeout(() => {
      this.#again = undefined
      this.#giveBackAgain()
    }, AGAIN_MS).unref()
  }

  /** Returns for each call whether it holds a slot. */
  async #takeOf(key: string, slotLeaseMs: number, asked: readonly Asked[]): Promise<boolean[]> {
    const calls = asked.flatMap(({ id, max }) => [max, id])
    const take = (name: string) => this.#take([name], [slotLeaseMs, ...calls])
    const answers = (await this.#inKey(this.#keyOf(key), take)) as unknown[]
    return answers.map((each) => Number(each) === 1)
  }

  /** Does something in a key, and names the fault if that has foreign contents. */
  async #inKey<T>(name: string, act: (name: string) => Promise<T>): Promise<T> {
    try {
      return await act(name)
    } catch (error) {
      throw error instanceof Error ? this.#options.faultOf(error, name) : error
    }
  }

  #keyOf(key: string): string {
    return `${this.#options.prefix}:${key}`
  }

  #keepRenewing(): void {
    this.#timer ??= setInterval(() => this.renew(), this.#options.slotLeaseMs / 3).unref()
  }
}

const PROBE = 'concurrency:probe'

function ignore(): void {}

import assert from 'node:assert/strict'
import type { ObservedState, TaskState, TaskStore } from '../../../../lib/endpoints/video/index.ts'
import { accountWallet } from '../../../../lib/ledger/index.ts'
import { give, take } from '../../../contracts/ledger-money.ts'
import {
  created,
  intentOf,
  moneyOf,
  NOON,
  type Payer,
  payer,
  type TasksUnderTest,
} from '../../../contracts/task-samples.ts'

/** Something that happens to two processes on one store. */
export type Step =
  | { op: 'intend'; at: number; seconds: number }
  | { op: 'created' | 'withdraw' | 'markUnresolved' | 'remove'; at: number; which: number }
  | { op: 'observe'; at: number; which: number; state: ObservedState | 'missing'; seconds: number }
  | { op: 'crash' | 'markUnanswered'; at: number }
  | { op: 'pass'; minutes: number }
  | { op: 'expire'; at: number; minutes: number }
  | { op: 'lease'; amount: number }
  | { op: 'deposit'; amount: number }

/** The state of a task that the model expects, without asking the store. */
interface Known {
  readonly id: string
  readonly hold: bigint
  readonly createdAt: number
  state: TaskState
  missingSince: number | null
  cost: bigint
  /** The process that creates it; null once that is over, or dead. */
  by: number | null
}

const MINUTE = 60_000
const OVER: ReadonlySet<TaskState> = new Set(['succeeded', 'failed', 'cancelled', 'expired'])
const costOf = (seconds: number): bigint => 5n + 10n * BigInt(seconds)
const leastOf = (one: bigint, other: bigint): bigint => (one < other ? one : other)

/** Two processes on one store, and what must hold of them at any time: said again, and more plainly. */
export class TaskWorld {
  readonly #tested: TasksUnderTest
  readonly #payer: Payer
  readonly #known: Known[] = []
  #now = NOON
  #funds: bigint
  #quota: bigint
  /** Of tasks that were removed since. */
  #spentBefore = 0n
  #leased = 0n
  #leaseSeq = 0
  readonly #lease: string
  #deposits = 0

  private constructor(tested: TasksUnderTest, who: Payer, funds: bigint, quota: bigint) {
    this.#tested = tested
    this.#payer = who
    this.#funds = funds
    this.#quota = quota
    this.#lease = `lease of ${who.account}`
  }

  static async open(tested: TasksUnderTest): Promise<TaskWorld> {
    const [funds, quota] = [400n, 300n]
    return new TaskWorld(tested, await payer(tested, funds, quota), funds, quota)
  }

  async take(step: Step): Promise<void> {
    switch (step.op) {
      case 'intend':
        return this.#intend(step)
      case 'created': {
        const task = this.#find(step.which)
        const answer = task && (await this.#store(step.at).created(task.id, created(), this.#now))
        if (task?.state === 'intended' || task?.state === 'unresolved') task.state = 'queued'
        if (task) task.by = null
        assert.equal(answer?.state, task?.state)
        return
      }
      case 'withdraw': {
        const task = this.#find(step.which)
        if (!task) return
        await this.#store(step.at).withdraw(task.id)
        if (task.state === 'intended' || task.state === 'unresolved') this.#drop(task)
        return
      }
      case 'markUnresolved': {
        const task = this.#find(step.which)
        if (task) await this.#store(step.at).markUnresolved(task.id, this.#now)
        if (task?.state === 'intended') task.state = 'unresolved'
        return
      }
      case 'remove': {
        const task = this.#find(step.which)
        if (!task) return
        const over = OVER.has(task.state)
        const answer = await this.#store(step.at).remove(this.#payer.account, task.id)
        assert.equal(answer, over ? 'removed' : 'unfinished')
        this.#spentBefore += over ? task.cost : 0n
        if (over) this.#drop(task)
        return
      }
      case 'observe':
        return this.#observe(step)
      case 'crash':
        for (const task of this.#known) if (task.by === step.at) task.by = null
        return
      case 'markUnanswered': {
        await this.#store(step.at).markUnanswered(this.#now, 1000)
        for (const task of this.#known) {
          if (task.state === 'intended' && task.createdAt + MINUTE <= this.#now) task.state = 'unresolved'
        }
        return
      }
      case 'pass':
        this.#now += step.minutes * MINUTE
        return
      case 'expire':
        return this.#expire(step)
      case 'lease':
        return this.#changeLease(BigInt(step.amount))
      case 'deposit':
        this.#funds += BigInt(step.amount)
        await this.#tested.ledger.deposit(
          this.#payer.account,
          BigInt(step.amount),
          `more ${++this.#deposits}`,
          1,
        )
    }
  }

  /** Asserts the invariants that hold at any time. */
  async check(): Promise<void> {
    assert.deepEqual((await this.#tested.ledger.check()).violations, [])
    const [account, key] = await moneyOf(this.#tested, this.#payer)
    const [held, spent] = [this.#held(), this.#spent()]
    assert.deepEqual(account?.slice(0, 3), [this.#funds, spent, held + this.#leased])
    assert.deepEqual(key?.slice(0, 3), [this.#quota, spent, held])
    for (const { id, state, cost } of this.#known) {
      const task = await this.#store(0).find(this.#payer.account, id)
      assert.deepEqual([task?.state, task?.charge?.amount ?? 0n], [state, cost], id)
    }
  }

  /** Asserts the invariants that hold when all tasks have come to rest: nothing stays held. */
  async end(): Promise<void> {
    this.#now += 72 * 60 * MINUTE
    await this.take({ op: 'expire', at: 1, minutes: 48 * 60 })
    await this.check()
    assert.equal(this.#held(), 0n)
  }

  async #intend({ at, seconds }: { at: number; seconds: number }): Promise<void> {
    const hold = costOf(seconds)
    const intent = intentOf(this.#payer, { createdAt: this.#now, hold })
    const [ofKey, ofAccount] = [this.#quota - this.#spent(), this.#funds - this.#spent()]
    const expected =
      hold > ofKey
        ? 'key_quota_exhausted'
        : hold > ofAccount
          ? 'insufficient_balance'
          : hold > ofKey - this.#held() || hold > ofAccount - this.#held() - this.#leased
            ? 'quota_lease_exhausted'
            : 'held'
    for (let times = 0; times < 2; times++) {
      const answer = await this.#store(at + times).intend(intent)
      assert.equal(answer.kind === 'refused' ? answer.refused : answer.kind, expected)
    }
    if (expected !== 'held') return
    const { id, createdAt } = intent
    this.#known.push({ id, hold, createdAt, state: 'intended', missingSince: null, cost: 0n, by: at })
  }

  async #observe({ at, which, state, seconds }: Extract<Step, { op: 'observe' }>): Promise<void> {
    const task = this.#find(which)
    if (!task) return
    const seen = state === 'missing' ? { state } : { state, usage: { seconds } }
    for (let times = 0; times < 2; times++) await this.#store(at + times).observe(task.id, seen, this.#now)
    if (task.state !== 'queued' && task.state !== 'running') return
    if (state === 'missing') {
      task.missingSince ??= this.#now
      if (this.#now - task.missingSince >= 10 * MINUTE) task.state = 'failed'
      return
    }
    task.missingSince = null
    if (state === 'queued') return
    task.state = state
    if (state === 'succeeded') task.cost = leastOf(costOf(seconds), 2n * task.hold)
  }

  async #expire({ at, minutes }: { at: number; minutes: number }): Promise<void> {
    const before = this.#now - minutes * MINUTE
    await this.#store(at).expire(before, this.#now, this.#now, 1000)
    for (const task of this.#known) {
      if (task.createdAt < before && !OVER.has(task.state)) task.state = 'expired'
    }
  }

  /** Takes that much for other calls; 0 gives all back. */
  async #changeLease(amount: bigint): Promise<void> {
    const wallet = accountWallet(this.#payer.account)
    const { ledger } = this.#tested
    if (this.#leased > 0n) {
      const back = give(`${this.#lease} ${this.#leaseSeq}`, wallet, this.#leased)
      await ledger.change('p', [back])
      this.#leased = 0n
    }
    if (amount === 0n) return
    const asked = take(`${this.#lease} ${++this.#leaseSeq}`, wallet, amount)
    const [answer] = await ledger.change('p', [asked])
    this.#leased = answer?.moved ?? 0n
  }

  #store(at: number): TaskStore {
    const { stores } = this.#tested
    return stores[at % stores.length] ?? stores[0]
  }

  #find(which: number): Known | undefined {
    return this.#known[which % Math.max(1, this.#known.length)]
  }

  #drop(task: Known): void {
    this.#known.splice(this.#known.indexOf(task), 1)
  }

  #held(): bigint {
    return this.#known.reduce((sum, { state, hold }) => (OVER.has(state) ? sum : sum + hold), 0n)
  }

  #spent(): bigint {
    return this.#known.reduce((sum, { cost }) => sum + cost, this.#spentBefore)
  }
}

import assert from 'node:assert/strict'
import { newRequestId } from '../../lib/core/call/index.ts'
import { FREE, type Price } from '../../lib/core/catalog/index.ts'
import type {
  CreatedTask,
  TaskIntent,
  TaskStore,
  VideoFacts,
  VideoTask,
} from '../../lib/endpoints/video/index.ts'
import { accountWallet, keyWallet, type Ledger, type LedgerAdmin } from '../../lib/ledger/index.ts'
import { taskIdOf } from '../../lib/ledger/tasks/task.ts'
import type { CallStore } from '../../lib/middleware/call-log/index.ts'
import type { IdempotencyStore } from '../../lib/middleware/idempotency/index.ts'
import { figuresOf, keyOf, prepaid } from './ledger-money.ts'

/** A store to try, further handles of it as other processes would have, and what it works with. */
export interface TasksUnderTest {
  readonly stores: readonly [TaskStore, ...TaskStore[]]
  readonly ledger: Ledger & LedgerAdmin
  readonly claims: IdempotencyStore
  readonly calls: CallStore
  close(): Promise<void>
}

export const NOON = Date.parse('2026-01-31T12:00:00Z')
export const HOUR = 3_600_000

export const PRICE: Price = {
  ...FREE,
  perRequest: 5n,
  perSecond: 10n,
}

export const FACTS: VideoFacts = {
  seconds: 8,
  size: '1280x720',
  resolution: null,
  ratio: null,
  framesPerSecond: null,
  seed: null,
  audio: null,
  remixOf: null,
}

/** A payer: a prepaid account of its own, and a key of it with or without a quota. */
export interface Payer {
  readonly account: string
  readonly key: string
}

export async function payer({ ledger }: TasksUnderTest, balance: bigint, quota?: bigint): Promise<Payer> {
  return { account: await prepaid(ledger, balance), key: await keyOf(ledger, quota) }
}

/** An intent of a task of eight seconds, for which 85 nano-units are held, made at a time. */
export function intentOf(who: Payer, members: Partial<TaskIntent> = {}): TaskIntent {
  const createdAt = members.createdAt ?? NOON
  const requestId = newRequestId(createdAt)
  return {
    id: taskIdOf(requestId),
    requestId,
    ...who,
    model: 'video-small',
    line: 'line-a',
    upstreamModel: 'sora-2',
    protocol: 'openai',
    facts: FACTS,
    price: PRICE,
    hold: 85n,
    createdAt,
    answerBy: createdAt + 60_000,
    claim: null,
    ...members,
  }
}

export function created(members: Partial<CreatedTask> = {}): CreatedTask {
  return {
    upstreamId: 'up_1',
    observation: { state: 'queued', progress: 0 },
    claim: null,
    entry: null,
    ...members,
  }
}

/** Intends a task, which must be held. */
export async function intended(store: TaskStore, intent: TaskIntent): Promise<VideoTask> {
  const answer = await store.intend(intent)
  assert.equal(answer.kind, 'held')
  assert.ok(answer.kind === 'held')
  return answer.task
}

/** A task that an upstream has. */
export async function taken(
  store: TaskStore,
  who: Payer,
  members: Partial<TaskIntent> = {},
): Promise<VideoTask> {
  const intent = intentOf(who, members)
  await intended(store, intent)
  const task = await store.created(intent.id, created(), intent.createdAt)
  assert.ok(task)
  return task
}

/** Funds, spent, leased and overrun of the account, then of the key. */
export async function moneyOf({ ledger }: TasksUnderTest, { account, key }: Payer): Promise<bigint[][]> {
  return [await figuresOf(ledger, accountWallet(account)), await figuresOf(ledger, keyWallet(key))]
}

/** Returns what is held on account and key. */
export async function leasedOf(tested: TasksUnderTest, who: Payer): Promise<(bigint | undefined)[]> {
  return (await moneyOf(tested, who)).map(([, , leased]) => leased)
}

/** Returns what is spent of account and key. */
export async function spentOf(tested: TasksUnderTest, who: Payer): Promise<(bigint | undefined)[]> {
  return (await moneyOf(tested, who)).map(([, spent]) => spent)
}

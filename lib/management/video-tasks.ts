import { z } from 'zod'
import { callOf } from '../core/call/index.ts'
import { formatAmount } from '../core/catalog/index.ts'
import type { ChangeOrigin } from '../core/change-log/index.ts'
import {
  type AnswerOf,
  accountPageQuery,
  amount,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  orNotFound,
  time,
} from '../core/json-api/index.ts'
import { positiveAmountMember, type ResourceParts } from './resource.ts'

const VIDEO_TASK_STATES = [
  'intended',
  'unresolved',
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
] as const

type VideoTaskState = (typeof VIDEO_TASK_STATES)[number]

/** A video task as operators see it. Times are milliseconds since the epoch, amounts nano-units. */
export interface VideoTaskFigures {
  readonly id: string
  /** The call that created it. */
  readonly requestId: string
  readonly account: string
  readonly key: string | null
  readonly model: string
  readonly protocol: string
  readonly line: string
  readonly upstreamModel: string
  readonly upstreamId: string | null
  readonly state: VideoTaskState
  /** In percent. */
  readonly progress: number | null
  /** The amount that is held until the task ends. */
  readonly hold: bigint
  readonly charge: { readonly amount: bigint } | null
  readonly error: { readonly code: string } | null
  readonly missingSince: number | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt: number | null
}

/** How an operator resolves a task: it made no video, or its video costs an amount, or its video used something. */
export type VideoTaskResolution =
  | { readonly outcome: 'released' }
  /** In nano-units; at most what is held for the task. */
  | { readonly outcome: 'charged'; readonly amount: bigint }
  /** Charged at the task's prices. */
  | {
      readonly outcome: 'charged'
      readonly usage: { readonly seconds?: number; readonly tokens?: number }
    }

/** The operations of a task store that the admin API needs. `MemoryTaskStore` and `SqlTaskStore` have them. */
export interface VideoTasksView {
  list(
    query: {
      readonly account?: string | undefined
      readonly states?: readonly VideoTaskState[] | undefined
      readonly ids?: readonly string[] | undefined
    },
    page: {
      readonly order: 'newest'
      readonly limit: number
      /** The last id of the previous page. */
      readonly after?: string | undefined
    },
  ): Promise<readonly VideoTaskFigures[]>

  /**
   * Ends a task as an operator decides, once, and records the change.
   *
   * @returns undefined if there is no such task. Any kind but `resolved` means that nothing changed: the task had ended,
   * its create is being sent, or the amount is more than what is held.
   */
  resolve(
    id: string,
    resolution: VideoTaskResolution,
    origin: ChangeOrigin,
  ): Promise<
    | {
        readonly kind: 'resolved' | 'settled' | 'under_way' | 'too_much'
        /** The task as it is now. */
        readonly task: VideoTaskFigures
      }
    | undefined
  >
}

const MAX_USED = 1_000_000_000

/** The usage of a video; at least one member is required. */
const usage = z
  .strictObject({
    seconds: z.number().positive().max(MAX_USED).optional(),
    tokens: z.int().positive().max(MAX_USED).optional(),
  })
  .refine(({ seconds, tokens }) => seconds !== undefined || tokens !== undefined, {
    error: 'must have "seconds", "tokens" or both',
  })

const newResolution = z.discriminatedUnion(
  'outcome',
  [
    z.strictObject({ outcome: z.literal('released') }),
    z
      .strictObject({
        outcome: z.literal('charged'),
        amount: positiveAmountMember.optional(),
        usage: usage.optional(),
      })
      .refine((body) => (body.amount === undefined) !== (body.usage === undefined), {
        path: ['amount'],
        error: 'a task is charged either by "amount" or by "usage"; send one of them',
      }),
  ],
  { error: 'must be "charged" or "released"' },
)

const videoTask = z.strictObject({
  id: z.string(),
  object: z.literal('video_task'),
  request_id: z.string().describe('The call that created it.'),
  account: z.string(),
  key: z.string().nullable(),
  model: z.string(),
  protocol: z.string(),
  line: z.string(),
  upstream_model: z.string(),
  upstream_id: z.string().nullable(),
  state: z.enum(VIDEO_TASK_STATES),
  progress: z.number().nullable().describe('In percent.'),
  held: amount,
  charged: amount.nullable(),
  error_code: z.string().nullable(),
  missing_since: time.nullable().describe('Since when the line does not know it.'),
  created_at: time,
  updated_at: time,
  finished_at: time.nullable(),
})
export type VideoTaskAnswer = AnswerOf<typeof videoTask>

interface VideoTaskParts extends ResourceParts {
  readonly tasks: VideoTasksView
}

const endpoint = endpointFor<VideoTaskParts>()

/** The video tasks of all accounts, and resolving those whose result is unknown. */
export const VIDEO_TASK_ENDPOINTS = [
  endpoint({
    id: 'listVideoTasks',
    method: 'get',
    path: '/video-tasks',
    role: 'viewer',
    summary: 'Video tasks of all accounts, newest first',
    query: accountPageQuery.extend({
      state: z.enum(VIDEO_TASK_STATES, `must be one of ${VIDEO_TASK_STATES.join(', ')}`).optional(),
    }),
    answers: answersWith('VideoTaskList', listOf(videoTask)),
    async handle({ query: { state, account, limit, cursor } }, { tasks }) {
      const query = { states: state && [state], account }
      const found = await tasks.list(query, { order: 'newest', limit: limit + 1, after: cursor })
      return listPage(found, limit, describe)
    },
  }),
  endpoint({
    id: 'getVideoTask',
    method: 'get',
    path: '/video-tasks/{id}',
    role: 'viewer',
    summary: 'One video task',
    answers: answersWith('VideoTask', videoTask),
    async handle({ req, id }, { tasks }) {
      const [task] = await tasks.list({ ids: [id] }, { order: 'newest', limit: 1 })
      return describe(orNotFound(req, task))
    },
  }),
  endpoint({
    id: 'resolveVideoTask',
    method: 'post',
    path: '/video-tasks/{id}/resolve',
    role: 'finance',
    summary: 'Charges or releases a video task that is unresolved or stuck, once',
    body: newResolution,
    answers: answersWith('VideoTask', videoTask),
    async handle({ req, id, body }, { tasks, origin }) {
      const resolved = await tasks.resolve(id, resolutionOf(body), origin(req))
      const { kind, task } = orNotFound(req, resolved)
      switch (kind) {
        case 'settled':
          throw callOf(req).refuse('conflict', { message: settledMessage(task) })
        case 'under_way':
          throw callOf(req).refuse('conflict', { message: UNDER_WAY })
        case 'too_much':
          throw callOf(req).refuse('invalid_request', {
            param: 'amount',
            message: `amount: at most ${formatAmount(task.hold)} is held for this task. If it cost more, charge it by "usage".`,
          })
        case 'resolved':
          return describe(task)
        default:
          throw new TypeError('the store of video tasks did not say whether it resolved a task')
      }
    },
  }),
]

const UNDER_WAY =
  'The create of this task is being sent. You can resolve the task once the create is answered or the task is "unresolved".'

function settledMessage({ state, charge }: VideoTaskFigures): string {
  const money = charge ? `${formatAmount(charge.amount)} was charged for it` : 'nothing was charged for it'
  return `This task is settled already: it is "${state}", and ${money}. To correct that, adjust the balance of its account.`
}

function resolutionOf(body: z.output<typeof newResolution>): VideoTaskResolution {
  if (body.outcome === 'released') return { outcome: 'released' }
  const { amount, usage = {} } = body
  if (amount !== undefined) return { outcome: 'charged', amount }
  const { seconds, tokens } = usage
  const used = { ...(seconds !== undefined && { seconds }), ...(tokens !== undefined && { tokens }) }
  return { outcome: 'charged', usage: used }
}

function describe(task: VideoTaskFigures): VideoTaskAnswer {
  return {
    id: task.id,
    object: 'video_task',
    request_id: task.requestId,
    account: task.account,
    key: task.key,
    model: task.model,
    protocol: task.protocol,
    line: task.line,
    upstream_model: task.upstreamModel,
    upstream_id: task.upstreamId,
    state: task.state,
    progress: task.progress,
    held: formatAmount(task.finishedAt === null ? task.hold : 0n),
    charged: task.charge && formatAmount(task.charge.amount),
    error_code: task.error?.code ?? null,
    missing_since: isoTime(task.missingSince),
    created_at: isoTime(task.createdAt),
    updated_at: isoTime(task.updatedAt),
    finished_at: isoTime(task.finishedAt),
  }
}

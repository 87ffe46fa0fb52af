import type { Request, Response, Router } from 'express'
import type { z } from 'zod'
import { callOf } from '../../../core/call/index.ts'
import { formatAmount } from '../../../core/catalog/index.ts'
import { changeOrigin } from '../../../core/change-log/index.ts'
import {
  idIn,
  isoTime,
  jsonBody,
  listPage,
  newRouter,
  orNotFound,
  ownQuery,
  readBody,
  readQuery,
} from '../../../core/json-api/index.ts'
import { resolutionSchema, videoTaskQuery } from './video-task-schemas.ts'
import type { VideoTaskFigures, VideoTaskResolution, VideoTasksView } from './video-tasks-view.ts'

export interface VideoTaskRoutesOptions {
  readonly tasks: VideoTasksView
  readonly actor: (req: Request) => string
}

/** Returns the routes of `/video-tasks`: the video tasks of all accounts, and resolving those whose result is unknown. */
export function videoTaskRoutes({ tasks, actor }: VideoTaskRoutesOptions): Router {
  const router = newRouter()
  router.get('/video-tasks', ownQuery, listTasks)
  router.get('/video-tasks/:id', showTask)
  router.post('/video-tasks/:id/resolve', jsonBody, resolveTask)
  return router

  async function listTasks(req: Request, res: Response): Promise<void> {
    const { state, account, limit, cursor } = readQuery(req, videoTaskQuery)
    const query = { states: state && [state], account }
    const found = await tasks.list(query, { order: 'newest', limit: limit + 1, after: cursor })
    res.json(listPage(found, limit, describeTask))
  }

  async function showTask(req: Request, res: Response): Promise<void> {
    const [task] = await tasks.list({ ids: [idIn(req)] }, { order: 'newest', limit: 1 })
    res.json(describeTask(orNotFound(req, task)))
  }

  async function resolveTask(req: Request, res: Response): Promise<void> {
    const resolution = resolutionOf(readBody(req, resolutionSchema))
    const resolved = await tasks.resolve(idIn(req), resolution, changeOrigin(req, actor))
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
        res.json(describeTask(task))
        return
      default:
        throw new TypeError('the store of video tasks did not say whether it resolved a task')
    }
  }
}

const UNDER_WAY =
  'The create of this task is being sent. You can resolve the task once the create is answered or the task is "unresolved".'

function settledMessage({ state, charge }: VideoTaskFigures): string {
  const money = charge ? `${formatAmount(charge.amount)} was charged for it` : 'nothing was charged for it'
  return `This task is settled already: it is "${state}", and ${money}.`
}

function resolutionOf(body: z.output<typeof resolutionSchema>): VideoTaskResolution {
  if (body.outcome === 'released') return { outcome: 'released' }
  const { amount, usage = {} } = body
  if (amount !== undefined) return { outcome: 'charged', amount }
  const { seconds, tokens } = usage
  const used = { ...(seconds !== undefined && { seconds }), ...(tokens !== undefined && { tokens }) }
  return { outcome: 'charged', usage: used }
}

function describeTask(task: VideoTaskFigures) {
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

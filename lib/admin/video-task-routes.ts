import { type Request, type Response, Router } from 'express'
import { callOf } from '../call/index.ts'
import { formatAmount } from '../catalog/index.ts'
import { listPage, readQuery } from '../list-page/index.ts'
import { pageQuery } from './page-query.ts'
import {
  VIDEO_TASK_STATES,
  type VideoTaskFigures,
  type VideoTaskState,
  type VideoTasksView,
} from './video-tasks-view.ts'

/** `/video-tasks…`: the videos of all accounts, those among them of which nobody knows whether a line took them. */
export function videoTaskRoutes(tasks: VideoTasksView): Router {
  const router = Router()
  router.get('/video-tasks', listTasks)
  router.get('/video-tasks/:id', showTask)
  return router

  async function listTasks(req: Request, res: Response): Promise<void> {
    const page = readQuery(req, pageQuery)
    const query = { states: statesIn(req), account: accountIn(req) }
    const found = await tasks.list(query, { order: 'newest', limit: page.limit + 1, after: page.cursor })
    res.json(listPage(found, page.limit, describeTask))
  }

  async function showTask(req: Request, res: Response): Promise<void> {
    const [task] = await tasks.list({ ids: [String(req.params.id)] }, { order: 'newest', limit: 1 })
    if (!task) throw callOf(req).refuse('not_found')
    res.json(describeTask(task))
  }
}

/** @throws {GatewayError} `invalid_request` for a word that is no state. */
function statesIn(req: Request): readonly VideoTaskState[] | undefined {
  const { state } = req.query
  if (state === undefined) return undefined
  const known = VIDEO_TASK_STATES.find((each) => each === state)
  if (known) return [known]
  throw callOf(req).refuse('invalid_request', {
    param: 'state',
    message: `The query parameter "state" must be one of ${VIDEO_TASK_STATES.join(', ')}.`,
  })
}

function accountIn(req: Request): string | undefined {
  const { account } = req.query
  if (account === undefined || typeof account === 'string') return account
  throw callOf(req).refuse('invalid_request', {
    param: 'account',
    message: 'The query parameter "account" must be the id of an account, sent once.',
  })
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
    missing_since: isoOf(task.missingSince),
    created_at: isoOf(task.createdAt),
    updated_at: isoOf(task.updatedAt),
    finished_at: isoOf(task.finishedAt),
  }
}

function isoOf(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString()
}

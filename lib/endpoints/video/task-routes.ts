import type { NextFunction, Request, RequestHandler, Response, Router } from 'express'
import { callOf, type OpenCall } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { fittingRows, newRouter, readQuery, refuseUnknown, setNoStore } from '../../core/json-api/index.ts'
import type { VideoTask } from '../../ledger/tasks/task.ts'
import type { TaskStore } from '../../ledger/tasks/task-store.ts'
import type { VideoContent } from './content/video-content.ts'
import { statesOf, toVideoTask } from './protocols/ark-task.ts'
import { taskList, videoList } from './protocols/list-query.ts'
import { toVideo, toVideoList } from './protocols/openai-video.ts'
import { storeAnswerFor } from './tasks/store-wait.ts'
import type { TaskService } from './tasks/task-service.ts'

/** The parts that the routes work with. */
export interface TaskRoutesDeps {
  readonly tasks: TaskStore
  readonly service: TaskService
  readonly content: VideoContent
}

/**
 * Returns the routes `GET /`, `GET /:id`, `DELETE /:id` and, OpenAI-style, `GET /:id/content`, in the protocol of the
 * path they are mounted on. A list shows the last known state of each task; reading a task asks its line.
 */
export function taskRoutes({ tasks, service, content }: TaskRoutesDeps): Router {
  const router = newRouter()
  router.get('/', answering(list))
  router.get('/:id', refuseUnknown, answering(readTask))
  router.delete('/:id', refuseUnknown, answering(cancelTask))
  router.get('/:id/content', (req, res, next) => {
    if (isArk(callOf(req))) next()
    else content.send(req, res).catch(next)
  })
  return router

  function list(req: Request, call: OpenCall): Promise<object> {
    const account = call.principal?.accountId
    if (account === undefined) throw call.refuse('missing_credential')
    return storeAnswerFor(call, isArk(call) ? listTasks(req, account) : listVideos(req, account))
  }

  async function listVideos(req: Request, account: string): Promise<object> {
    const { limit, after, order } = readQuery(req, videoList)
    // One row more than asked for shows whether there is a next page.
    const page = { order: order === 'asc' ? 'oldest' : 'newest', limit: limit + 1, after } as const
    const found = await tasks.list({ account, taken: true }, page)
    return toVideoList(found, limit)
  }

  async function listTasks(req: Request, account: string): Promise<object> {
    const query = readQuery(req, taskList)
    const { page_num: number, page_size: limit, 'filter.status': status } = query
    const narrowed = {
      account,
      taken: true,
      model: query['filter.model'],
      ids: query['filter.task_ids'],
      states: status === undefined ? undefined : statesOf(status),
    }
    const page = { order: 'newest', limit, skip: (number - 1) * limit } as const
    const [found, total] = await Promise.all([tasks.list(narrowed, page), tasks.count(narrowed)])
    const items = fittingRows(found, (task) => bodyOf(req, task))
    // A caller who asks for pages by number would never see what is left out.
    if (items.length < found.length) throw tooLarge()
    return { items, total }
  }

  async function readTask(req: Request, call: OpenCall): Promise<object> {
    return bodyOf(req, await service.current(call, await service.find(call, idOf(req))))
  }

  async function cancelTask(req: Request, call: OpenCall): Promise<object> {
    const task = await service.find(call, idOf(req))
    await service.cancel(call, task)
    return isArk(call) ? {} : { id: task.id, object: 'video.deleted', deleted: true }
  }

  function bodyOf(req: Request, task: VideoTask): object {
    return isArk(callOf(req)) ? toVideoTask(task, content.addressOf(req, task)) : toVideo(task)
  }
}

function isArk({ protocol }: OpenCall): boolean {
  return protocol.name === 'ark'
}

function tooLarge(): GatewayError {
  return new GatewayError('invalid_request', {
    param: 'page_size',
    message: 'A page has at most 1 MiB, and this one would have more. Ask for a smaller "page_size".',
  })
}

function idOf(req: Request): string {
  return String(req.params.id)
}

/** Answers with JSON that caches must not store. */
function answering(answer: (req: Request, call: OpenCall) => Promise<object>): RequestHandler {
  return async function answering(req: Request, res: Response, next: NextFunction): Promise<void> {
    const call = callOf(req)
    const release = call.hold()
    try {
      const body = await answer(req, call)
      if (call.left) return
      setNoStore(res)
      res.json(body)
    } catch (error) {
      next(call.stamp(error))
    } finally {
      release()
    }
  }
}

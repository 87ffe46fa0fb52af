import { randomBytes } from 'node:crypto'
import type { NextFunction, Request, RequestHandler, Response, Router } from 'express'
import { type Call, callOf, consoleLogger, type Logger } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { type Operation, remixOf, videos, videoTasks } from '../../core/operations/index.ts'
import { Downloads } from './content/downloads.ts'
import { UrlSigner } from './content/signed-url.ts'
import { VideoContent } from './content/video-content.ts'
import { CreateCall, type CreateDeps } from './creates/create-call.ts'
import { VideoLineClients } from './lines/line-clients.ts'
import type { VideoLines } from './lines/video-lines.ts'
import { toVideo } from './protocols/openai-video.ts'
import { taskRoutes } from './task-routes.ts'
import type { LineClients } from './tasks/line-client.ts'
import { RecordKeeper } from './tasks/record-keeper.ts'
import type { VideoTask } from './tasks/task.ts'
import { TaskService } from './tasks/task-service.ts'
import type { TaskStore } from './tasks/task-store.ts'

/** Options of {@link videoEndpoints}. */
export interface VideoEndpointsOptions {
  /** Where tasks and the money held for them are kept, such as `new SqlTaskStore(db)`. */
  tasks: TaskStore
  /** How lines are reached, such as `new LineAccess({ catalog, lines })`. */
  lines: VideoLines
  /**
   * Signs the addresses under which videos can be fetched without a key, at least 16 characters. Processes that share
   * callers need the same one. Defaults to a random one of this process: its addresses end with it.
   */
  urlSigningSecret?: string | undefined
  /** How long such an address is good for, in milliseconds. Defaults to 24 hours. */
  signedForMs?: number
  /** What such an address begins with, such as `https://models.example.com`. Defaults to the request's own host. */
  publicOrigin?: string | undefined
  /** Is told what lines say that nobody understands, and what cannot be recorded. Defaults to the console. */
  logger?: Logger
}

/** The video endpoints, to be mounted where each belongs. */
export interface VideoEndpoints {
  /** `GET /v1/videos/:id/content` with a signature, which stands for a key: mount it before `authenticate`. */
  readonly signedContent: RequestHandler
  /** Before `readRequest`: finds the video that is to be remixed. */
  readonly findSource: RequestHandler
  /** For `readRequest`: the endpoint of a request that creates a video. */
  readonly operationOf: (req: Request) => Operation
  /** Creates a video, last in its chain. */
  readonly create: RequestHandler
  /** Reads, lists, deletes, and fetches the content of, videos. Mount it on both paths, behind `authenticate`. */
  readonly routes: Router
  /** What the lines can be asked about their tasks, for a `TaskSettler`. */
  readonly clients: LineClients
  /** Ends downloads under way, and waits for records that are still to be written. */
  close(): Promise<void>
}

/** Where videos are created, in both protocols: the chain that ends with `create`. */
export const VIDEO_CREATE_PATHS = [videos.path, `${videos.path}/:id/remix`, videoTasks.path]

/** Where videos are read, listed and deleted, in both protocols: what `routes` is mounted on. */
export const VIDEO_PATHS = [videos.path, videoTasks.path]

/**
 * Video in both protocols: OpenAI-style `/v1/videos` and task-style `/api/v3/contents/generations/tasks`, over
 * lines of either kind. A create refuses as `route` and `billingGuard` do; another account's video is `not_found`, and to cancel
 * one that is being made is a `conflict`.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const video = videoEndpoints({ tasks, lines: new LineAccess({ catalog }) })
 * app.get('/v1/videos/:id/content', video.signedContent)
 * app.use(authenticate({ keys }))
 * app.post(VIDEO_CREATE_PATHS, video.findSource, readRequest({ catalog, operation: video.operationOf }), video.create)
 * app.use(VIDEO_PATHS, video.routes)
 */
export function videoEndpoints(options: VideoEndpointsOptions): VideoEndpoints {
  const { tasks, lines, logger, signer, publicOrigin } = validate(options)
  const clients = new VideoLineClients(lines, logger)
  const records = new RecordKeeper({ logger })
  const deps: CreateDeps = { tasks, records, lines, clients }
  const newTrace = () => lines.pinnedTrace()
  const service = new TaskService({ tasks, clients: clients.of, newTrace, logger })
  const downloads = new Downloads()
  const content = new VideoContent({ service, lines, downloads, signer, publicOrigin })
  const sources = new WeakMap<Request, VideoTask>()

  async function source(req: Request): Promise<void> {
    const id = req.params.id
    if (id === undefined) return
    const call = callOf(req)
    const task = await service.current(call, await service.find(call, String(id)))
    if (task.state !== 'succeeded')
      throw call.refuse('conflict', { message: 'Only a completed video can be remixed.' })
    sources.set(req, task)
  }

  function operationOf(req: Request): Operation {
    const task = sources.get(req)
    if (task) return remixOf({ id: task.id, model: task.model, seconds: task.facts.seconds })
    return callOf(req).protocol.name === 'ark' ? videoTasks : videos
  }

  async function createVideo(req: Request, res: Response): Promise<void> {
    const call = callOf(req)
    if (!call.request) throw new TypeError('video: there is no call.request; mount readRequest before it')
    const task = sources.get(req)
    // A remix is made where its source is.
    if (task) call.pin = { line: task.line, holds: 'the video to be remixed' }
    const answerOf = call.protocol.name === 'ark' ? ({ id }: VideoTask) => ({ id }) : toVideo
    const creation = new CreateCall(call, call.request, deps, task)
    const answer = await creation.run((created) => JSON.stringify(answerOf(created)))
    if (call.left) return
    res.setHeader('content-type', 'application/json')
    res.end(answer)
  }

  return {
    findSource: function findSource(req, _res, next) {
      source(req).then(() => next(), next)
    },
    operationOf,
    create: function create(req, res, next) {
      held(callOf(req), () => createVideo(req, res)).catch(failureTo(callOf(req), next))
    },
    signedContent: (req, res, next) => content.signed(req, res, next),
    routes: taskRoutes({ tasks, service, content }),
    clients: clients.of,
    async close() {
      await Promise.all([downloads.close(), records.close()])
    },
  }
}

async function held(call: Call, run: () => Promise<void>): Promise<void> {
  const release = call.hold()
  try {
    await run()
  } finally {
    release()
  }
}

/** A caller that has left is told nothing; what nobody foresaw is. */
function failureTo(call: Call, next: NextFunction): (error: unknown) => void {
  return (error) => {
    if (!call.left) next(error instanceof GatewayError ? call.stamp(error) : error)
    else if (!(error instanceof GatewayError))
      call.logger.error({ err: error, requestId: call.id }, 'video: a create failed')
  }
}

function validate(options: VideoEndpointsOptions) {
  const { tasks, lines, logger = consoleLogger, signedForMs = 86_400_000, publicOrigin } = options
  const { urlSigningSecret = randomBytes(32).toString('base64url') } = options
  if (typeof tasks?.intend !== 'function')
    throw new TypeError('videoEndpoints: "tasks" must be a TaskStore, such as new SqlTaskStore(db)')
  if (typeof lines?.place !== 'function')
    throw new TypeError('videoEndpoints: "lines" must reach lines, such as new LineAccess({ catalog })')
  if (urlSigningSecret.length < 16)
    throw new TypeError('videoEndpoints: "urlSigningSecret" must be at least 16 characters long')
  if (!(signedForMs >= 1000))
    throw new TypeError('videoEndpoints: "signedForMs" must be at least 1000 milliseconds')
  if (publicOrigin !== undefined && !URL.canParse(publicOrigin))
    throw new TypeError('videoEndpoints: "publicOrigin" must be a URL, such as https://models.example.com')
  return { tasks, lines, logger, publicOrigin, signer: new UrlSigner(urlSigningSecret, signedForMs) }
}

import { randomBytes } from 'node:crypto'
import type { NextFunction, Request, RequestHandler, Response, Router } from 'express'
import { callOf, type Logger, type OpenCall, quietLogger } from '../../core/call/index.ts'
import type { CallStore } from '../../core/call-store/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { type Operation, remixOf, videos, videoTasks } from '../../core/operations/index.ts'
import {
  aLogger,
  aNumber,
  anObjectWith,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import type { Budgets } from '../../ledger/index.ts'
import { taskIdOf, type VideoTask } from '../../ledger/tasks/task.ts'
import type { TaskStore } from '../../ledger/tasks/task-store.ts'
import type { LineAccess } from '../../routing/line-access.ts'
import { Downloads } from './content/downloads.ts'
import { UrlSigner } from './content/signed-url.ts'
import { VideoContent } from './content/video-content.ts'
import { CreateCall, type CreateDeps } from './creates/create-call.ts'
import { UNKNOWN_RESULT } from './creates/create-record.ts'
import { IntentGate } from './creates/intent-gate.ts'
import { VideoLineClients } from './lines/line-clients.ts'
import { toVideo } from './protocols/openai-video.ts'
import { taskRoutes } from './task-routes.ts'
import type { LineClients } from './tasks/line-client.ts'
import { RetryingWriter } from './tasks/retrying-writer.ts'
import { TaskService } from './tasks/task-service.ts'

/** Options of {@link videoEndpoints}. */
export interface VideoEndpointsOptions {
  /** The store of the tasks and of the money held for them, such as `new SqlTaskStore(db)`. */
  tasks: TaskStore
  /** The budgets that videos count against, such as a `Budgets`. Defaults to none. */
  budgets?: Pick<Budgets, 'matching' | 'refusal'>
  /** The access to the lines, such as `new LineAccess({ catalog, lines })`. */
  lines: LineAccess
  /**
   * Signs the addresses under which videos can be fetched without a key; at least 16 characters. Of a list, the first one
   * signs, and all are accepted. Processes that serve the same callers need the same secret. Defaults to a random one,
   * whose addresses become invalid when the process ends.
   */
  urlSigningSecret?: string | readonly string[] | undefined
  /** How long a signed address is valid, in milliseconds. Defaults to 24 hours. */
  signedForMs?: number
  /** The origin of signed addresses, such as `https://models.example.com`. Defaults to the request's own host. */
  publicOrigin?: string | undefined
  /** The store of the call log, for the answer to a repeated create whose result is unknown. Defaults to none. */
  calls?: Pick<CallStore, 'list'>
  /** Logs unknown statuses of lines and records that cannot be written. Defaults to the console. */
  logger?: Logger
}

/** The handlers of the video endpoints. Mount each at its own place in the chain. */
export interface VideoEndpoints {
  /** Serves `GET /v1/videos/:id/content` with a signature, without a key. Mount it before `authenticate`. */
  readonly signedContent: RequestHandler
  /** Finds the video that a remix is made of. Mount it before `readRequest`. */
  readonly findSource: RequestHandler
  /** Returns the operation of a request that creates a video, for `readRequest`. */
  readonly operationOf: (req: Request) => Operation
  /** Creates a video. Mount it last in its chain. */
  readonly create: RequestHandler
  /**
   * Reads, lists and deletes videos, and sends their content. Mount it on {@link VIDEO_PATHS}, behind `authenticate`.
   */
  readonly routes: Router
  /** Returns the client of a line, for a `TaskSettler`. */
  readonly clients: LineClients
  /**
   * Returns the answer to a create whose result is unknown, by the id of its request; undefined if its result is known.
   * It is the option `unresolved` of `idempotency`.
   */
  unresolved(requestId: string): Promise<GatewayError | undefined>
  /** Replaces the `urlSigningSecret`. */
  signWith(secret: VideoEndpointsOptions['urlSigningSecret']): void
  /** Ends running downloads and waits for records that are not written yet. */
  close(): Promise<void>
}

/** Calls do not wait so long. A withdrawal does: an intent that arrived after it would stay. */
const INTEND_MS = 60_000

/** The paths on which videos are created, in both protocols, for the chain that ends with `create`. */
export const VIDEO_CREATE_PATHS = [videos.path, `${videos.path}/:id/remix`, videoTasks.path]

/** The paths on which videos are read, listed and deleted, in both protocols, for `routes`. */
export const VIDEO_PATHS = [videos.path, videoTasks.path]

/**
 * Returns the video endpoints of both protocols: OpenAI-style `/v1/videos` and task-style
 * `/api/v3/contents/generations/tasks`, over lines of either protocol. A create is refused as by `route` and
 * `billingGuard`. Another account's video is `not_found`; cancelling a running one is a `conflict`.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const video = videoEndpoints({ tasks, lines: new LineAccess({ catalog }) })
 * app.get('/v1/videos/:id/content', video.signedContent)
 * app.use(authenticate({ keys }))
 * app.post(VIDEO_CREATE_PATHS, video.findSource, readRequest({ catalog, operation: video.operationOf }), video.create)
 * app.use(VIDEO_PATHS, video.routes)
 */
export function videoEndpoints(options: VideoEndpointsOptions): VideoEndpoints {
  const { tasks, calls, lines, logger, signedForMs, publicOrigin } = validate(options)
  const random = randomBytes(32).toString('base64url')
  const secretsOf = (secret: VideoEndpointsOptions['urlSigningSecret']) => [secret ?? random].flat()
  const signer = new UrlSigner(secretsOf(options.urlSigningSecret), signedForMs)
  const clients = new VideoLineClients(lines, logger)
  const records = new RetryingWriter({ logger })
  const deps: CreateDeps = {
    tasks,
    records,
    gate: new IntentGate(),
    lines,
    clients,
    budgets: options.budgets,
  }
  const newTrace = () => lines.pinnedTrace()
  const service = new TaskService({ tasks, clients: clients.of, newTrace, logger })
  const downloads = new Downloads((line) => lines.transportTo(line))
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
    // A remix must be made on the line of its source.
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
      held(callOf(req), () => createVideo(req, res)).catch(onFailure(callOf(req), next))
    },
    signedContent: (req, res, next) => content.signed(req, res, next),
    routes: taskRoutes({ tasks, service, content }),
    clients: clients.of,
    async unresolved(requestId) {
      const [task] = await tasks.list({ ids: [taskIdOf(requestId)] }, { order: 'newest', limit: 1 })
      if (task?.state !== 'unresolved') return undefined
      // A list has no response bodies.
      const logged = await calls?.list({ ids: [requestId], limit: 1 })
      return new GatewayError(logged?.entries[0]?.error_code ?? 'upstream_error', UNKNOWN_RESULT)
    },
    signWith: (secret) => signer.setSecrets(secretsOf(secret)),
    async close() {
      await Promise.all([downloads.close(), records.close()])
    },
  }
}

async function held(call: OpenCall, run: () => Promise<void>): Promise<void> {
  const release = call.hold()
  try {
    await run()
  } finally {
    release()
  }
}

/** Returns a handler for the error of a create. If the caller has left, an unexpected error is logged instead. */
function onFailure(call: OpenCall, next: NextFunction): (error: unknown) => void {
  return (error) => {
    if (!call.left) next(call.stamp(error))
    else if (!(error instanceof GatewayError))
      call.logger.error({ err: error, requestId: call.id }, 'video: a create failed')
  }
}

const RULES: OptionRules<VideoEndpointsOptions> = {
  tasks: required(anObjectWith('a TaskStore, such as new SqlTaskStore(db)', 'intend')),
  budgets: anObjectWith('budgets, such as new Budgets({ store })', 'matching', 'refusal'),
  lines: required(anObjectWith('the access to lines, such as new LineAccess({ catalog })', 'submit')),
  urlSigningSecret: {
    be: 'at least 16 characters long, or a list of such secrets',
    accepts: (value) =>
      [value].flat().every((secret) => typeof secret === 'string' && secret.length >= 16) &&
      !(Array.isArray(value) && value.length === 0),
  },
  // Beyond that, an address has no room for its end.
  signedForMs: aNumber('from 1000 to 3155760000000 milliseconds (100 years)', 1000, 3_155_760_000_000),
  publicOrigin: {
    be: 'a URL, such as https://models.example.com',
    accepts: (value) => typeof value === 'string' && URL.canParse(value),
  },
  calls: anObjectWith('the CallStore of the call log', 'list'),
  logger: aLogger,
}

function validate(options: VideoEndpointsOptions) {
  checkOptions('videoEndpoints', options, RULES)
  const { tasks, lines, signedForMs = 86_400_000, publicOrigin } = options
  const logger = quietLogger(options.logger)
  const bounded = boundedStore('video tasks', tasks, { intend: INTEND_MS })
  const calls = options.calls && boundedStore('call log', options.calls)
  return { tasks: bounded, calls, lines, logger, publicOrigin, signedForMs }
}

import type { NextFunction, Request, Response } from 'express'
import { z } from 'zod'
import { accountLimitsOf, callOf, keyLimitsOf, type OpenCall } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { readQuery } from '../../../core/json-api/index.ts'
import type { VideoTask } from '../../../ledger/tasks/task.ts'
import type { LineAccess } from '../../../routing/line-access.ts'
import type { TaskService } from '../tasks/task-service.ts'
import type { Downloads } from './downloads.ts'
import { sendDownload } from './send-download.ts'
import type { UrlSigner } from './signed-url.ts'

/** The parts that {@link VideoContent} works with. */
export interface VideoContentDeps {
  readonly service: TaskService
  readonly lines: LineAccess
  readonly downloads: Downloads
  readonly signer: UrlSigner
  readonly publicOrigin: string | undefined
}

const VARIANTS = ['video', 'thumbnail', 'spritesheet'] as const
type Variant = (typeof VARIANTS)[number]

const contentQuery = z.strictObject({
  variant: z.enum(VARIANTS, `must be one of ${VARIANTS.join(', ')}`).default('video'),
})
/** The signer judges its part of the query. */
const signedQuery = contentQuery.extend({ expires: z.unknown().optional(), signature: z.unknown() })

/** Sends the content of videos to callers with a key or with a signed address. */
export class VideoContent {
  readonly #deps: VideoContentDeps

  constructor(deps: VideoContentDeps) {
    this.#deps = deps
  }

  /** Returns a signed address of a video, on the host that the caller used. */
  addressOf(req: Request, { id }: VideoTask): string {
    const { publicOrigin = `${req.protocol}://${req.host}`, signer } = this.#deps
    // The path before the protocols' own paths is where the gateway is mounted.
    const prefix = callOf(req).path.replace(/\/(?:api\/v3|v1)\/.*$/i, '')
    return `${publicOrigin.replace(/\/$/, '')}${prefix}/v1/videos/${id}/content?${signer.queryFor(id, Date.now())}`
  }

  /** Sends a video to a caller of its account. */
  async send(req: Request, res: Response): Promise<void> {
    const call = callOf(req)
    const { variant } = readQuery(req, contentQuery)
    await this.#send(req, res, await this.#deps.service.find(call, String(req.params.id)), variant)
  }

  /**
   * Sends a video to a caller with its signed address. A request without a signature goes on to the routes that need a
   * key.
   */
  signed(req: Request, res: Response, next: NextFunction): void {
    const { expires, signature } = req.query
    if (signature === undefined) {
      next()
      return
    }
    this.#sendSigned(req, res, { expires, signature }).catch(next)
  }

  async #sendSigned(
    req: Request,
    res: Response,
    query: { expires: unknown; signature: unknown },
  ): Promise<void> {
    const call = callOf(req)
    const id = String(req.params.id)
    const validity = this.#deps.signer.verify(id, query, Date.now())
    if (validity !== 'valid') {
      const message =
        validity === 'expired'
          ? EXPIRED
          : 'The signature of this address is not valid. Read the task again for a new address.'
      throw call.refuse('invalid_credential', { message })
    }
    const task = await this.#deps.service.findAny(call, id)
    attribute(call, task)
    await this.#send(req, res, task, readQuery(req, signedQuery).variant)
  }

  async #send(req: Request, res: Response, known: VideoTask, variant: Variant): Promise<void> {
    const { service, lines, downloads } = this.#deps
    const call = callOf(req)
    const task = await service.current(call, known)
    if (task.state !== 'succeeded') throw refuseUnmade(call, task)
    const line = lines.line(task.line)
    const client = service.clientOf(call, task)
    if (!line || !client) throw call.refuse('not_found')
    if (line.protocol === 'ark' && variant !== 'video')
      throw call.refuse('unsupported_feature', {
        param: 'variant',
        message: 'This video has no variants. Leave "variant" out.',
      })
    const ending = new AbortController()
    call.onLeave(() => ending.abort())
    call.keyWatch?.follow(call, (error) => ending.abort(error))
    const { signal } = ending
    const source = await client.content(task, variant, signal)
    if (call.left) return
    throwKeyEnd(signal)
    if (source.kind === 'missing') throw call.refuse('not_found')
    if (source.kind === 'away') throw call.refuse(source.code)
    const { url, headers } = source
    const note = service.noteFor([call], task)
    await sendDownload(req, res, call, downloads, { url, headers, line, note, signal })
    if (!res.writableEnded && !call.left) throwKeyEnd(signal)
  }
}

function throwKeyEnd({ reason }: AbortSignal): void {
  if (reason instanceof GatewayError) throw reason
}

const EXPIRED = 'This address has expired. Read the task again for a new one.'

function refuseUnmade(call: OpenCall, { state }: VideoTask) {
  if (state === 'queued' || state === 'running')
    return call.refuse('conflict', { message: 'The video is not finished yet. Read it again later.' })
  return call.refuse('not_found', { message: 'The video has no content: it was not generated.' })
}

/**
 * Attributes a call with a signed address to the account of the video. Limits and models of the account are not known.
 */
function attribute(call: OpenCall, { account, key }: VideoTask): void {
  call.principal = {
    accountId: account,
    keyId: key ?? '',
    accountLimits: accountLimitsOf(),
    keyLimits: keyLimitsOf(),
    lineRegions: undefined,
    mayUseModel: () => false,
  }
}

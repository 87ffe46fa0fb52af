import type { LineRequest, LineRequestBody } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'
import { FormFile, type VideoBody, withoutFlags } from '../../../core/operations/index.ts'
import type { KnownObservation, ObservedState } from '../../../ledger/tasks/task.ts'
import { dataUrlOf } from './data-url.ts'
import { DEFAULT_SIZE, framingOf, MAPPED_SIZES, sizeOf } from './frame-size.ts'
import { type AnswerParser, known, numberOf, reasonOf, shortText, stateReader } from './upstream-answer.ts'
import { jsonBody, jsonBytes, type VideoCreate } from './video-create.ts'

const DEFAULT_SECONDS = 4

/**
 * Returns a create as the request for a task-style line.
 *
 * @throws {GatewayError} `unsupported_feature`, naming the member that has no counterpart.
 */
export function arkCreateRequest(create: VideoCreate, upstreamModel: string): LineRequest {
  const { json } = create.body
  const isOwn = create.operation.protocol === 'ark'
  if (isOwn) refuseRevealing(json)
  const body: LineRequestBody = isOwn
    ? jsonBody(create, upstreamModel)
    : { type: 'application/json', bytes: jsonBytes({ ...membersOfVideo(create), model: upstreamModel }) }
  return { method: 'POST', path: '/contents/generations/tasks', body }
}

/** Members that are refused because they would show the line's own ids and addresses to callers. */
const REVEALING = ['callback_url', 'return_last_frame']

function refuseRevealing(json: Readonly<Record<string, unknown>>): void {
  for (const name of REVEALING) if (json[name]) throw unsupported(name)
}

const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'prompt',
  'seconds',
  'size',
  'input_reference',
  'provider',
  'user',
])

/** Translates an OpenAI-style request. Defaults are written out, because the line has others. */
function membersOfVideo({ body: { json }, remixOf }: VideoCreate): Record<string, unknown> {
  if (remixOf !== null)
    throw new GatewayError('unsupported_feature', {
      message: 'Videos of this model cannot be remixed. Create a new video instead.',
    })
  const body = json as VideoBody
  for (const [name, value] of Object.entries(body)) {
    if (!MAPPED.has(name) && value !== null && value !== undefined) throw unsupported(name)
  }
  const framing = framingOf(body.size ?? DEFAULT_SIZE)
  if (!framing) throw unsupported('size', `The lines of this model make these sizes: ${MAPPED_SIZES}.`)
  return {
    content: [{ type: 'text', text: withoutFlags(body.prompt) }, ...imageParts(body.input_reference)],
    resolution: framing.resolution,
    ratio: framing.ratio,
    duration: Number(body.seconds ?? DEFAULT_SECONDS),
  }
}

function imageParts(reference: VideoBody['input_reference']): object[] {
  if (!reference) return []
  return [{ type: 'image_url', image_url: { url: imageUrl(reference) }, role: 'first_frame' }]
}

function imageUrl(reference: NonNullable<VideoBody['input_reference']>): string {
  if (!(reference instanceof FormFile)) {
    if (reference.image_url !== undefined) return reference.image_url
    throw unsupported(
      'input_reference.file_id',
      'The lines of this model do not know your files. Send the image itself, or its URL.',
    )
  }
  if (reference.contentType.startsWith('image/')) return dataUrlOf(reference)
  throw unsupported('input_reference', 'The lines of this model take images only as input_reference.')
}

function unsupported(param: string, message?: string): GatewayError {
  return new GatewayError('unsupported_feature', {
    param,
    message: message ?? `The lines of this model do not support ${param}. Leave it out.`,
  })
}

/** Addresses with signatures are long; a video in place of an address is not kept. */
const MAX_URL_LENGTH = 8192

const STATES: Readonly<Record<string, ObservedState>> = {
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
}

export function arkAnswers(onUnknownStatus: (status: string) => void): AnswerParser {
  const stateOf = stateReader(STATES, onUnknownStatus)
  // A create is answered with the id only.
  return { created: ({ status }) => ({ state: status === undefined ? 'queued' : stateOf(status) }), read }

  function read(task: JsonObject): KnownObservation {
    const state = stateOf(task.status)
    const [resolution, ratio] = [shortText(task.resolution), shortText(task.ratio)]
    const size = resolution && ratio ? sizeOf({ resolution, ratio }) : undefined
    const seconds = secondsOf(task)
    const contentUrl = isJsonObject(task.content) ? task.content.video_url : undefined
    return {
      state,
      facts: known({
        seconds,
        size,
        resolution,
        ratio,
        framesPerSecond: numberOf(task.framespersecond),
        seed: numberOf(task.seed),
        audio: typeof task.generate_audio === 'boolean' ? task.generate_audio : undefined,
      }),
      usage: state === 'succeeded' ? known({ seconds, tokens: tokensOf(task.usage) }) : {},
      ...(typeof contentUrl === 'string' && contentUrl.length <= MAX_URL_LENGTH && { contentUrl }),
      ...(state === 'failed' && { error: reasonOf(task.error) }),
    }
  }
}

function tokensOf(usage: unknown): number | undefined {
  return isJsonObject(usage) ? numberOf(usage.completion_tokens) : undefined
}

/** Returns the length in seconds. Lines report frames if the request asked for frames. */
function secondsOf({ duration, frames, framespersecond }: JsonObject): number | undefined {
  const seconds = numberOf(duration)
  if (seconds !== undefined) return seconds
  const [count, perSecond] = [numberOf(frames), numberOf(framespersecond)]
  return count !== undefined && perSecond ? count / perSecond : undefined
}

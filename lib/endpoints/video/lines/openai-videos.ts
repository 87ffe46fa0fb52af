import type { LineRequest, LineRequestBody } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'
import {
  FormFile,
  multipartBody,
  type TaskParameter,
  taskParameters,
  textsOf,
  type VideoTaskBody,
} from '../../../core/operations/index.ts'
import type { KnownObservation, ObservedState } from '../../../ledger/tasks/task.ts'
import { fileOf } from './data-url.ts'
import { framingOf, sizeOf } from './frame-size.ts'
import { type AnswerParser, known, numberOf, reasonOf, shortText, stateReader } from './upstream-answer.ts'
import { jsonBody, jsonBytes, type VideoCreate } from './video-create.ts'

/**
 * Returns a create as the request for an OpenAI-style line.
 *
 * @throws {GatewayError} `unsupported_feature`, naming the member that has no counterpart.
 */
export function openAiCreateRequest(create: VideoCreate, upstreamModel: string): LineRequest {
  const { operation, remixOf } = create
  const json = create.body.json
  if (remixOf !== null) {
    const { provider: _, ...members } = json
    return { method: 'POST', path: `/videos/${encodeURIComponent(remixOf)}/remix`, body: bodyOf(members) }
  }
  const isOwn = operation.protocol === 'openai' && !Object.values(json).some(isFile)
  const { provider: _, ...own } = json
  const members = operation.protocol === 'openai' ? own : membersOfTask(json as VideoTaskBody)
  const body = isOwn ? jsonBody(create, upstreamModel) : bodyOf({ ...members, model: upstreamModel })
  return { method: 'POST', path: '/videos', body }
}

/** Returns a form if a member is a file, else JSON. */
function bodyOf(members: Readonly<Record<string, unknown>>): LineRequestBody {
  if (Object.values(members).some(isFile)) return multipartBody(members)
  return { type: 'application/json', bytes: jsonBytes(members) }
}

function isFile(value: unknown): boolean {
  return value instanceof FormFile
}

/** Values that ask for what OpenAI-style lines do anyway; they are left out. */
const WITHOUT_EFFECT: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['seed', -1],
  ['camera_fixed', false],
  ['watermark', false],
  ['return_last_frame', false],
  ['generate_audio', true],
  ['draft', false],
  ['service_tier', 'default'],
])

const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'content',
  'provider',
  'resolution',
  'ratio',
  'duration',
])

function membersOfTask(body: VideoTaskBody): Record<string, unknown> {
  const { prompt, given } = taskParameters(body, textsOf(body))
  for (const [name, value] of [...Object.entries(body), ...given]) {
    if (MAPPED.has(name) || value === null || value === undefined) continue
    if (WITHOUT_EFFECT.get(name) !== value) throw unsupported(name)
  }
  if (prompt === '') throw unsupported('content', 'The lines of this model need a text in "content".')
  const size = sizeFrom(given)
  const duration = given.get('duration')
  if (duration !== undefined && !(typeof duration === 'number' && duration > 0)) throw unsupported('duration')
  const reference = imageOf(body)
  return {
    prompt,
    ...(size !== undefined && { size }),
    ...(duration !== undefined && { seconds: String(duration) }),
    ...(reference !== undefined && { input_reference: reference }),
  }
}

/** Returns the size. If only resolution or ratio is given, the other has the default of task-style lines. */
function sizeFrom(given: ReadonlyMap<TaskParameter, unknown>): string | undefined {
  const { resolution, ratio } = { resolution: given.get('resolution'), ratio: given.get('ratio') }
  if (resolution === undefined && ratio === undefined) return undefined
  const size = sizeOf({ resolution: String(resolution ?? '720p'), ratio: String(ratio ?? '16:9') })
  if (size === undefined)
    throw unsupported(sizeOf({ resolution: '720p', ratio: String(ratio ?? '16:9') }) ? 'resolution' : 'ratio')
  return size
}

function imageOf({ content }: VideoTaskBody): FormFile | { image_url: string } | undefined {
  let image: FormFile | { image_url: string } | undefined
  for (const [i, { type, image_url: given, role }] of content.entries()) {
    if (type === 'text') continue
    const fits = type === 'image_url' && given && (role ?? 'first_frame') === 'first_frame'
    if (!fits || image) throw unsupported(`content[${i}]`)
    image = fileOf(given.url) ?? { image_url: given.url }
  }
  return image
}

function unsupported(param: string, message?: string): GatewayError {
  return new GatewayError('unsupported_feature', {
    param,
    message: message ?? `The lines of this model do not support this ${param}. Leave it out.`,
  })
}

const STATES: Readonly<Record<string, ObservedState>> = {
  queued: 'queued',
  in_progress: 'running',
  completed: 'succeeded',
  failed: 'failed',
}

export function openAiAnswers(onUnknownStatus: (status: string) => void): AnswerParser {
  const stateOf = stateReader(STATES, onUnknownStatus)
  return {
    // Some servers with this API answer a create with the id only.
    created: (video) => (video.status === undefined ? { state: 'queued' } : observationOf(video)),
    read: observationOf,
  }

  function observationOf(video: JsonObject): KnownObservation {
    const state = stateOf(video.status)
    const { size, seconds } = { size: shortText(video.size), seconds: numberOf(video.seconds) }
    return {
      state,
      ...known({ progress: numberOf(video.progress) }),
      facts: known({ size, seconds, ...(size !== undefined && framingOf(size)) }),
      // Until the video is made, `seconds` are those that the request asked for.
      usage: state === 'succeeded' ? known({ seconds, tokens: tokensOf(video.usage) }) : {},
      ...(state === 'failed' && { error: reasonOf(video.error) }),
    }
  }
}

/** Returns the output tokens. OpenAI itself does not report them; some servers with its API do. */
function tokensOf(usage: unknown): number | undefined {
  if (!isJsonObject(usage)) return undefined
  return numberOf(usage.output_tokens) ?? numberOf(usage.completion_tokens)
}

import { z } from 'zod'
import type { Feature } from '../../catalog/index.ts'
import { checkedAs, checkedWith, listOf, schemaNamed } from '../body/body-schema.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'
import { renamedBody } from '../body/upstream-body.ts'
import { TOKENS_PER_IMAGE, TOKENS_PER_REQUEST } from '../metering/token-estimate.ts'
import {
  featuresOf,
  type Operation,
  PREFIX_CHARS,
  plainFacts,
  type RequestFacts,
  type TokenEstimator,
} from '../operation.ts'
import { readCreated } from './videos.ts'

const DEFAULT_SECONDS = 5
/** The longest video that a line may make if the caller leaves the length to it (`duration: -1`), in seconds. */
const MAX_CHOSEN_SECONDS = 12
/** The frame rate of all lines of this protocol. */
const FRAMES_PER_SECOND = 24

const address = z.looseObject({ url: z.string().min(1) })

const PARTS: Readonly<Record<string, z.ZodType>> = {
  text: z.looseObject({ text: z.string() }),
  image_url: z.looseObject({ image_url: address }),
  video_url: z.looseObject({ video_url: address }),
  audio_url: z.looseObject({ audio_url: address }),
  draft_task: z.looseObject({ draft_task: z.looseObject({ id: z.string().min(1) }) }),
}

const part = checkedAs(
  z.looseObject({
    type: z.string(),
    text: z.string().nullish(),
    image_url: address.nullish(),
    role: z.string().nullish(),
  }),
  ({ type }) => schemaNamed(PARTS, type),
)

/** Members that are passed on, and that the gateway does not judge a request by. */
const passedOn = z.looseObject({
  callback_url: z.string().nullish(),
  return_last_frame: z.boolean().nullish(),
  service_tier: z.string().nullish(),
  execution_expires_after: z.int().nullish(),
  generate_audio: z.boolean().nullish(),
  draft: z.boolean().nullish(),
  camera_fixed: z.boolean().nullish(),
  watermark: z.boolean().nullish(),
  framespersecond: z.int().nullish(),
  safety_identifier: z.string().nullish(),
})

/**
 * The members of a task that the gateway reads; unknown members pass through unchanged to a line of the same protocol.
 */
const judged = z.looseObject({
  model: z.string().min(1),
  content: listOf(part, 1),
  resolution: z.string().nullish(),
  ratio: z.string().nullish(),
  duration: z.int().min(-1).max(3600).nullish(),
  frames: z.int().min(1).max(100_000).nullish(),
  seed: z.int().nullish(),
  provider: providerConstraintSchema.nullish(),
})

const schema = checkedWith(judged, passedOn)

/** The body of `POST /api/v3/contents/generations/tasks`. */
export type VideoTaskBody = z.output<typeof judged>

/** Task-style video: `POST /api/v3/contents/generations/tasks`. */
export const videoTasks: Operation = {
  name: 'contents.generations.tasks',
  kind: 'video',
  priceUnit: 'seconds',
  protocol: 'ark',
  path: '/api/v3/contents/generations/tasks',
  upstreamPath: '/contents/generations/tasks',
  schema,
  facts: (json, _raw, estimate) => taskFacts(json as VideoTaskBody, estimate),
  promptPrefix: (json) =>
    textsOf(json as VideoTaskBody)
      .join('\n')
      .slice(0, PREFIX_CHARS),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  readAnswer: readCreated,
}

/** Returns the texts of a task's content. */
export function textsOf({ content }: VideoTaskBody): string[] {
  return content.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
}

function taskFacts(body: VideoTaskBody, estimate: TokenEstimator): RequestFacts {
  const featureParams = new Map<Feature, string>()
  let images = 0
  for (const [i, { type }] of body.content.entries()) {
    if (type === 'text') continue
    images++
    if (!featureParams.has('vision')) featureParams.set('vision', `content[${i}]`)
  }
  return {
    model: body.model,
    ...plainFacts(false),
    features: featuresOf(featureParams),
    featureParams,
    estimatedInputTokens: TOKENS_PER_REQUEST + estimate(textsOf(body).join('\n')) + images * TOKENS_PER_IMAGE,
    units: secondsOf(body),
    images,
  }
}

/** Returns the maximum length of the video in seconds, by its members and flags. */
function secondsOf(body: VideoTaskBody): number {
  const { given } = taskParameters(body, textsOf(body))
  const frames = given.get('frames')
  if (typeof frames === 'number') return Math.max(1, Math.ceil(frames / FRAMES_PER_SECOND))
  const duration = given.get('duration')
  if (typeof duration !== 'number') return DEFAULT_SECONDS
  return duration > 0 ? Math.min(duration, 3600) : MAX_CHOSEN_SECONDS
}

/** The parameters of a task-style video, from the members of its body and the flags in its text. */
export interface TaskParameters {
  /** The text without flags. */
  readonly prompt: string
  /** The parameters by their member names. If a parameter has both a member and a flag, the member wins. */
  readonly given: ReadonlyMap<TaskParameter, unknown>
}

/** The parameters that have a flag, by the names of their members. */
export type TaskParameter =
  | 'resolution'
  | 'ratio'
  | 'duration'
  | 'frames'
  | 'framespersecond'
  | 'seed'
  | 'camera_fixed'
  | 'watermark'

const PARAMETER_BY_FLAG: Readonly<Record<string, TaskParameter>> = {
  resolution: 'resolution',
  rs: 'resolution',
  ratio: 'ratio',
  rt: 'ratio',
  duration: 'duration',
  dur: 'duration',
  frames: 'frames',
  framespersecond: 'framespersecond',
  fps: 'framespersecond',
  seed: 'seed',
  camerafixed: 'camera_fixed',
  cf: 'camera_fixed',
  watermark: 'watermark',
  wm: 'watermark',
}

const PARAMETERS = [...new Set(Object.values(PARAMETER_BY_FLAG))]
const FLAG = new RegExp(`(?<![^\\s])--(${Object.keys(PARAMETER_BY_FLAG).join('|')})\\s+(\\S+)`, 'gi')

/** Reads the parameters of a task-style body that its schema has accepted. */
export function taskParameters(
  body: Readonly<Record<string, unknown>>,
  texts: readonly string[],
): TaskParameters {
  const given = new Map<TaskParameter, unknown>()
  const prompt = texts
    .map((text) =>
      text.replace(FLAG, (_flag, name: string, value: string) => {
        given.set(PARAMETER_BY_FLAG[name.toLowerCase()] as TaskParameter, flagValue(value))
        return ''
      }),
    )
    .join('\n')
    .trim()
  for (const name of PARAMETERS)
    if (body[name] !== undefined && body[name] !== null) given.set(name, body[name])
  return { prompt, given }
}

function flagValue(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,10}$/.test(text) ? Number(text) : text
}

/** Escapes a text for a task-style line, so that the line reads no flags in it. */
export function withoutFlags(text: string): string {
  return text.replace(FLAG, (flag) => `—${flag.slice(2)}`)
}

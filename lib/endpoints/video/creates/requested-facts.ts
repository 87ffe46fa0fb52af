import type { CallRequest } from '../../../core/call/index.ts'
import {
  taskParameters,
  textsOf,
  type VideoBody,
  type VideoTaskBody,
} from '../../../core/operations/index.ts'
import type { VideoFacts, VideoTask } from '../../../ledger/tasks/task.ts'
import { framingOf, sizeOf } from '../lines/frame-size.ts'

/** The size of the OpenAI-style protocol for a request without one. */
const DEFAULT_SIZE = '720x1280'

export function requestedFacts(request: CallRequest, source: VideoTask | undefined): VideoFacts {
  const { operation, body, units: seconds } = request
  const nothing: VideoFacts = {
    seconds,
    size: null,
    resolution: null,
    ratio: null,
    framesPerSecond: null,
    seed: null,
    audio: null,
    remixOf: source?.id ?? null,
  }
  if (operation.protocol === 'ark') return { ...nothing, ...ofTask(body.json as VideoTaskBody) }
  return { ...nothing, ...ofSize(source ? source.facts.size : (body.json as VideoBody).size) }
}

function ofSize(given: string | null | undefined): Partial<VideoFacts> {
  const size = given ?? DEFAULT_SIZE
  return { size, ...framingOf(size) }
}

function ofTask(body: VideoTaskBody): Partial<VideoFacts> {
  const { given } = taskParameters(body, textsOf(body))
  const seed = given.get('seed')
  const [resolution, ratio] = [textOf(given.get('resolution')), textOf(given.get('ratio'))]
  return {
    resolution,
    ratio,
    size: (resolution && ratio && sizeOf({ resolution, ratio })) || null,
    seed: typeof seed === 'number' && Number.isSafeInteger(seed) ? seed : null,
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value.slice(0, 40).toWellFormed() : null
}

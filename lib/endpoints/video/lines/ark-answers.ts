import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'
import type { KnownObservation, ObservedState } from '../../../ledger/tasks/task.ts'
import { sizeOf } from './frame-size.ts'
import { type AnswerParser, known, numberOf, reasonOf, shortText, stateReader } from './upstream-answer.ts'

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

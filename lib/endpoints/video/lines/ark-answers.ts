import type { KnownObservation } from '../tasks/line-client.ts'
import type { ObservedState } from '../tasks/task.ts'
import { sizeOf } from './frame-size.ts'
import {
  type AnswerParser,
  asMembers,
  known,
  type Members,
  numberOf,
  reasonOf,
  wordOf,
} from './upstream-answer.ts'

const STATES: Readonly<Record<string, ObservedState>> = {
  queued: 'queued',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
}

/** Returns a parser for the answers of a task-style line. */
export function arkAnswers(onUnknownWord: (word: string) => void): AnswerParser {
  // A create is answered with the id only.
  return { created: ({ status }) => ({ state: status === undefined ? 'queued' : stateOf(status) }), read }

  function read(task: Members): KnownObservation {
    const state = stateOf(task.status)
    const [resolution, ratio] = [wordOf(task.resolution), wordOf(task.ratio)]
    const size = resolution && ratio ? sizeOf({ resolution, ratio }) : undefined
    const seconds = secondsOf(task)
    const contentUrl = asMembers(task.content)?.video_url
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
      ...(typeof contentUrl === 'string' && { contentUrl }),
      ...(state === 'failed' && { error: reasonOf(task.error) }),
    }
  }

  function stateOf(status: unknown): ObservedState {
    if (typeof status !== 'string') throw new SyntaxError('the answer tells no status')
    if (Object.hasOwn(STATES, status)) return STATES[status] as ObservedState
    onUnknownWord(status)
    return 'running'
  }
}

function tokensOf(usage: unknown): number | undefined {
  return numberOf(asMembers(usage)?.completion_tokens)
}

/** Returns the length in seconds. Lines report frames if the request asked for frames. */
function secondsOf({ duration, frames, framespersecond }: Members): number | undefined {
  const seconds = numberOf(duration)
  if (seconds !== undefined) return seconds
  const [count, perSecond] = [numberOf(frames), numberOf(framespersecond)]
  return count !== undefined && perSecond ? count / perSecond : undefined
}

import type { KnownObservation } from '../tasks/line-client.ts'
import type { ObservedState } from '../tasks/task.ts'
import { framingOf } from './frame-size.ts'
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
  in_progress: 'running',
  completed: 'succeeded',
  failed: 'failed',
}

/** Returns a parser for the answers of an OpenAI-style line. */
export function openAiAnswers(onUnknownWord: (word: string) => void): AnswerParser {
  return {
    // Some servers with this API answer a create with the id only.
    created: (video) => (video.status === undefined ? { state: 'queued' } : observationOf(video)),
    read: observationOf,
  }

  function observationOf(video: Members): KnownObservation {
    const state = stateOf(video.status)
    const { size, seconds } = { size: wordOf(video.size), seconds: numberOf(video.seconds) }
    return {
      state,
      ...known({ progress: numberOf(video.progress) }),
      facts: known({ size, seconds, ...(size !== undefined && framingOf(size)) }),
      // Until the video is made, `seconds` are those that the request asked for.
      usage: state === 'succeeded' ? known({ seconds, tokens: tokensOf(video.usage) }) : {},
      ...(state === 'failed' && { error: reasonOf(video.error) }),
    }
  }

  function stateOf(status: unknown): ObservedState {
    if (typeof status !== 'string') throw new SyntaxError('the answer tells no status')
    if (Object.hasOwn(STATES, status)) return STATES[status] as ObservedState
    onUnknownWord(status)
    return 'running'
  }
}

/** Returns the output tokens. OpenAI itself does not report them; some servers with its API do. */
function tokensOf(usage: unknown): number | undefined {
  const { output_tokens: output, completion_tokens: completion } = asMembers(usage) ?? {}
  return numberOf(output) ?? numberOf(completion)
}

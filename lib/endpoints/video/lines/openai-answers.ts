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

/** The answers of an OpenAI-style line. */
export function openAiAnswers(onUnknownWord: (word: string) => void): AnswerParser {
  return {
    // Some of those that are like the real API answer a create with the id and nothing else.
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
      // Of one that is being made the seconds are those that were asked for.
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

/** Not the real API's, but that of some which are like it. */
function tokensOf(usage: unknown): number | undefined {
  const { output_tokens: output, completion_tokens: completion } = asMembers(usage) ?? {}
  return numberOf(output) ?? numberOf(completion)
}

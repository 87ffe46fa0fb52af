import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'
import type { KnownObservation, ObservedState } from '../../../ledger/tasks/task.ts'
import { framingOf } from './frame-size.ts'
import { type AnswerParser, known, numberOf, reasonOf, shortText, stateReader } from './upstream-answer.ts'

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

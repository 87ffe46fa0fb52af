import type { AttemptError } from '../../core/call/index.ts'
import type { Failure } from './failure.ts'
import { promptless, type SentBody } from './promptless.ts'

/**
 * Returns what the trace keeps of an upstream's error: its own names, and its message without the prompt.
 *
 * @param sent the body that was sent; undefined if it is not known.
 */
export function attemptError({ error, retryable }: Failure, sent?: SentBody): AttemptError | undefined {
  if (!error) return undefined
  const { type, code, param, message } = error
  // What is not the request's fault speaks of our own account, and quotes its names.
  const about = retryable ? undefined : sent
  // Names are read like messages: an upstream may put the prompt anywhere.
  const kept = (text: string): string | null => (text === '' ? null : promptless(text, about))
  return {
    type: kept(type),
    code: kept(code),
    param: kept(param ?? ''),
    message: kept(message),
  }
}

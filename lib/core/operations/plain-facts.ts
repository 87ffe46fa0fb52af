import type { RequestFacts } from './operation.ts'

/** Returns the facts of a request without messages, which asks for one answer and no feature but streaming. */
export function plainFacts(
  stream: boolean | null | undefined,
): Omit<RequestFacts, 'model' | 'estimatedInputTokens'> {
  const featureParams = new Map(stream === true ? [['stream', 'stream'] as const] : [])
  return {
    stream: stream === true,
    features: new Set(featureParams.keys()),
    featureParams,
    maxOutputTokens: undefined,
    answers: 1,
    messages: 0,
    tools: 0,
    images: 0,
  }
}

import type { RequestFacts } from '../operation.ts'

/** Returns the facts of a request that asks for no feature but streaming. */
export function streamFeature(
  stream: boolean | null | undefined,
): Pick<RequestFacts, 'stream' | 'features' | 'featureParams'> {
  const featureParams = new Map(stream === true ? [['stream', 'stream'] as const] : [])
  return { stream: stream === true, features: new Set(featureParams.keys()), featureParams }
}

import type { ProtocolName } from '../protocols/index.ts'
import type { Line } from './catalog.ts'

/** What the lines of each protocol can have: the paths of callers, without `/v1/`, or `/api/v3/` of `ark`. */
export const ENDPOINTS_BY_PROTOCOL = {
  openai: [
    'chat/completions',
    'completions',
    'responses',
    'embeddings',
    'images/generations',
    'rerank',
    'videos',
  ],
  anthropic: ['messages', 'messages/count_tokens'],
  ark: ['contents/generations/tasks'],
} as const satisfies Readonly<Record<ProtocolName, readonly string[]>>

/** The name of an endpoint, as a line's config lists it. */
export type EndpointName = (typeof ENDPOINTS_BY_PROTOCOL)[ProtocolName][number]

/** What decides which endpoints can be asked of a line. */
export type LineEndpoints = Pick<Line, 'protocol'> & Partial<Pick<Line, 'endpoints'>>

/**
 * Whether a line has an endpoint: it speaks the protocol, and does not leave the endpoint out.
 *
 * @param endpoint its name, such as `chat/completions`.
 */
export function hasEndpoint(line: LineEndpoints, protocol: ProtocolName, endpoint: string): boolean {
  return line.protocol === protocol && (line.endpoints?.has(endpoint) ?? true)
}

/** The endpoints of a list that no line of the protocol has, with their places in it. */
export function foreignEndpoints(
  protocol: ProtocolName,
  endpoints: readonly EndpointName[],
): readonly [index: number, name: EndpointName][] {
  const own: readonly EndpointName[] = ENDPOINTS_BY_PROTOCOL[protocol]
  return [...endpoints.entries()].filter(([, name]) => !own.includes(name))
}

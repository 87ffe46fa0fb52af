import type { ProtocolName } from '../protocols/index.ts'
import type { Line } from './catalog.ts'

/** The endpoints that a line can have, by its protocol: paths without `/v1/`, or without `/api/v3/` for `ark`. */
export const ENDPOINTS_BY_PROTOCOL = {
  openai: [
    'chat/completions',
    'completions',
    'responses',
    'responses/compact',
    'responses/input_tokens',
    'embeddings',
    'images/generations',
    'images/edits',
    'rerank',
    'videos',
  ],
  anthropic: ['messages', 'messages/count_tokens'],
  ark: ['contents/generations/tasks'],
} as const satisfies Readonly<Record<ProtocolName, readonly string[]>>

/** The members of a line that decide which endpoints it has. */
export type LineEndpoints = Pick<Line, 'protocol'> & Partial<Pick<Line, 'endpoints'>>

/**
 * Whether a line has an endpoint of a protocol.
 *
 * @param endpoint the name of the endpoint, such as `chat/completions`.
 */
export function hasEndpoint(line: LineEndpoints, protocol: ProtocolName, endpoint: string): boolean {
  return line.protocol === protocol && (line.endpoints?.has(endpoint) ?? true)
}

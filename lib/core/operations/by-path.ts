import { hasEndpoint, type LineEndpoints } from '../catalog/index.ts'
import { chatCompletions } from './chat/chat-completions.ts'
import { completions } from './chat/completions.ts'
import { embeddings } from './embeddings.ts'
import { imageEdits } from './images/image-edits.ts'
import { imageGenerations } from './images/image-generations.ts'
import { messages } from './messages/messages.ts'
import type { Operation } from './operation.ts'
import { rerank } from './rerank.ts'
import { compactResponse, responses } from './responses/responses.ts'
import { countTokens, responseInputTokens } from './token-counts.ts'

/** All endpoints that run a model. */
export const OPERATIONS: readonly Operation[] = [
  chatCompletions,
  completions,
  responses,
  responseInputTokens,
  compactResponse,
  embeddings,
  imageGenerations,
  imageEdits,
  rerank,
  messages,
  countTokens,
]

/** The endpoint for each kind of model, to name it in an error if the kinds do not match. */
export const ENDPOINT_BY_KIND = {
  chat: 'POST /v1/chat/completions',
  embedding: 'POST /v1/embeddings',
  image: 'POST /v1/images/generations',
  rerank: 'POST /v1/rerank',
  video: 'POST /v1/videos',
} as const

/** Returns the name of an operation in the `endpoints` of a line, such as `chat/completions`. */
export function endpointOf({ endpoint, upstreamPath }: Operation): string {
  return endpoint ?? upstreamPath.slice(1)
}

/** Whether a line serves an operation without translation: it has the same protocol and the endpoint. */
export function servesNatively(line: LineEndpoints, operation: Operation): boolean {
  return hasEndpoint(line, operation.protocol, endpointOf(operation))
}

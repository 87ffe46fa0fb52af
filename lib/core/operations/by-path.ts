import { chatCompletions } from './chat/chat-completions.ts'
import { completions } from './chat/completions.ts'
import { embeddings } from './embeddings.ts'
import { imageEdits } from './image-edits.ts'
import { imageGenerations } from './images.ts'
import { countTokens } from './messages/count-tokens.ts'
import { messages } from './messages/messages.ts'
import type { Operation } from './operation.ts'
import { rerank } from './rerank.ts'
import { compactResponse, responseInputTokens } from './responses/response-inputs.ts'
import { responses } from './responses/responses.ts'

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

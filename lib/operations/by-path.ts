import { chatCompletions } from './chat-completions.ts'
import { messages } from './messages.ts'
import type { Operation } from './operation.ts'

/** Every endpoint that runs a model, one row each. */
export const OPERATIONS: readonly Operation[] = [chatCompletions, messages]

/** The endpoint that serves a kind of model, to point a caller to when the kinds do not match. */
export const ENDPOINT_BY_KIND = {
  chat: 'POST /v1/chat/completions',
  embedding: 'POST /v1/embeddings',
  image: 'POST /v1/images/generations',
  rerank: 'POST /v1/rerank',
  video: 'POST /v1/videos',
} as const

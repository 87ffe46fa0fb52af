import { openAi, openAiErrorBody } from './openai.ts'
import type { Protocol } from './protocol.ts'

/** Task-style video: `/api/v3/…`. Its errors are the standard envelope (spec 2.3). */
export const ark: Protocol = {
  name: 'ark',
  requestIdHeaders: ['x-request-id'],
  errorBody: openAiErrorBody,
  streamError: openAi.streamError,
}

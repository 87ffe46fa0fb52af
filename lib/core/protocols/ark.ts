import { openAi, openAiErrorBody } from './openai.ts'
import type { Protocol } from './protocol.ts'

/** The task-style protocol of video: `/api/v3/…`. Its errors have the OpenAI-style envelope. */
export const ark: Protocol = {
  name: 'ark',
  requestIdHeaders: ['x-request-id'],
  errorBody: openAiErrorBody,
  streamError: openAi.streamError,
}

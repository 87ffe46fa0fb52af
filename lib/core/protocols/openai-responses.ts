import type { GatewayError } from '../errors/index.ts'
import { openAi, openAiErrorBody } from './openai.ts'
import type { Protocol } from './protocol.ts'

/**
 * OpenAI-style, on `/v1/responses`: events are named and numbered. Its reference has the members of an error in the event
 * itself, the API sends them in `error`; clients look at either, so they stand in both.
 */
export const openAiResponses: Protocol = {
  ...openAi,
  streamError(error: GatewayError, requestId: string, eventNumber = 0) {
    const { code, message, param = null } = error
    const event = {
      type: 'error',
      sequence_number: eventNumber,
      code,
      message,
      param,
      ...openAiErrorBody(error, requestId),
    }
    return `event: error\ndata: ${JSON.stringify(event)}\n\n`
  },
}

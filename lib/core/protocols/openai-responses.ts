import type { GatewayError } from '../errors/index.ts'
import { openAi, openAiErrorBody } from './openai.ts'
import type { Protocol } from './protocol.ts'

/**
 * The OpenAI-style protocol on `/v1/responses`, whose events are named and numbered. OpenAI's reference has the members of
 * an error in the event itself, its API sends them in `error`. Clients read either, so the event has both.
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

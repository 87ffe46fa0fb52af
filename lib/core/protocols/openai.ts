import type { GatewayError } from '../errors/index.ts'
import type { Protocol } from './protocol.ts'

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

/** Returns the OpenAI-style error envelope. The task-style video protocol has the same. */
function openAiErrorBody(error: GatewayError, requestId: string): object {
  const body: Record<string, unknown> = {
    message: error.message,
    type: TYPE_BY_STATUS[error.status] ?? (error.status < 500 ? 'invalid_request_error' : 'server_error'),
    code: error.code,
  }
  if (error.param !== undefined) body.param = error.param
  if (error.details !== undefined) body.details = error.details
  return { error: body, request_id: requestId }
}

/** OpenAI-style: chat completions, embeddings, images, rerank, videos. */
export const openAi: Protocol = {
  name: 'openai',
  requestIdHeaders: ['x-request-id'],
  errorBody: openAiErrorBody,
  streamError: (error, requestId) => `data: ${JSON.stringify(openAiErrorBody(error, requestId))}\n\n`,
}

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

/** The task-style protocol of video: `/api/v3/…`. Its errors have the OpenAI-style envelope. */
export const ark: Protocol = {
  name: 'ark',
  requestIdHeaders: ['x-request-id'],
  errorBody: openAiErrorBody,
  streamError: openAi.streamError,
}

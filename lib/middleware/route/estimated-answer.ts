import type { ServerResponse } from 'node:http'
import type { Call, CallRequest } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'

/**
 * Answers a call with the gateway's own estimate, if no line of the model has the endpoint and the operation can be
 * answered so. The header `X-Gateway-Estimated` says it.
 *
 * @param error why no line served the call; it is thrown if the call cannot be answered.
 */
export async function answerEstimate(
  error: unknown,
  call: Call,
  { operation, estimatedInputTokens }: CallRequest,
  res: ServerResponse,
): Promise<void> {
  if (!operation.estimatedAnswer || !lacksEndpoint(error, call)) throw error
  const body = JSON.stringify(operation.estimatedAnswer(estimatedInputTokens))
  await call.settle({ outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: body })
  call.prove()
  if (call.left) return
  res.writeHead(200, { 'content-type': 'application/json', 'x-gateway-estimated': 'true' }).end(body)
}

/** Whether the endpoint decided that no line is left, and not a filter behind it. */
function lacksEndpoint(error: unknown, { routing }: Call): boolean {
  if (!(error instanceof GatewayError) || error.code !== 'no_candidate' || !routing) return false
  const reasons = routing.eliminated.map(({ reason }) => reason)
  return reasons.includes('protocol') && !reasons.includes('price_ceiling')
}

import type { ServerResponse } from 'node:http'
import type { CallRequest, OpenCall } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'

/**
 * Whether a call that no line serves can be answered with an estimate: the endpoint decided that no line is left, and not a
 * filter behind it.
 *
 * @param error why no line served the call.
 */
export function isEstimable(error: unknown, { routing }: OpenCall, { operation }: CallRequest): boolean {
  if (!operation.estimatedAnswer || !routing) return false
  if (!(error instanceof GatewayError) || error.code !== 'no_candidate') return false
  const reasons = routing.eliminated.map(({ reason }) => reason)
  return reasons.includes('protocol') && !reasons.includes('price_ceiling')
}

/** Answers a call with the gateway's own estimate. The header `X-Gateway-Estimated` says so. */
export async function answerEstimate(
  call: OpenCall,
  { operation, estimatedInputTokens }: CallRequest,
  res: ServerResponse,
): Promise<void> {
  const body = JSON.stringify(operation.estimatedAnswer?.(estimatedInputTokens))
  await call.settle({ outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: body })
  call.assertOwnsClaim()
  if (call.left) return
  res.writeHead(200, { 'content-type': 'application/json', 'x-gateway-estimated': 'true' }).end(body)
}

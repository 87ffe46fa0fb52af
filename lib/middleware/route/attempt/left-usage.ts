import { type CallRequest, heldOutput } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import type { StreamReader, Usage } from '../../../core/operations/index.ts'
import type { DispatchExchange } from '../../../routing/attempt/dispatch-exchange.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import { usageOfAnswer, usageOfStream } from './metering.ts'

/** More than upstreams write in a second: what a plain answer may have come to before its caller left. */
const MAX_TOKENS_PER_SECOND = 1000

/** Whether a model may reason without showing all of it. */
export function reasonsUnseen({ model, features }: CallRequest, line: Line): boolean {
  const isListed = model.features?.has('reasoning') || line.features?.has('reasoning')
  return isListed || features.has('reasoning')
}

/**
 * Returns the usage of an attempt that was ended because its caller had left: its input, and the output that came. Output
 * that nobody has seen counts, too: all that was held for on a model that reasons, else what a plain answer can have come to
 * in its time. Null if the line did not have the request, or refused it; and before the output of a call with an
 * Idempotency-Key, because it may be sent again.
 *
 * @param isKeyed whether the call has an Idempotency-Key.
 */
export function usageOfLeft(
  request: CallRequest,
  reader: StreamReader | undefined,
  candidate: Candidate,
  { connectMs, durationMs, status }: Pick<DispatchExchange<never>, 'connectMs' | 'durationMs' | 'status'>,
  isKeyed: boolean,
): Usage | null {
  if (connectMs === null || (status !== null && status !== 200)) return null
  const reasons = reasonsUnseen(request, candidate.line)
  if (isKeyed && !reasons && !hasProduced(reader)) return null
  const held = heldOutput(request)
  const { operation, units, answers } = request
  const isByPiece = operation.priceUnit === 'images'
  const inTime = Math.ceil(((durationMs - connectMs) / 1000) * MAX_TOKENS_PER_SECOND * answers)
  const unseen = reasons || isByPiece ? held : Math.min(held, inTime)
  if (!reader) {
    const usage = isByPiece ? { images: units } : {}
    const least = { usage, estimateOutput: () => unseen }
    return { ...usageOfAnswer(request, least, candidate), source: 'estimated' }
  }
  const usage = usageOfStream(request, reader, candidate)
  const isKnown = usage.source === 'measured' || !reasons
  return isKnown || usage.outputTokens >= unseen
    ? usage
    : { ...usage, outputTokens: unseen, source: 'estimated' }
}

function hasProduced(reader: StreamReader | undefined): boolean {
  return reader?.substance === 'output' || reader?.substance === 'refusal'
}

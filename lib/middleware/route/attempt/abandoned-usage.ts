import { type CallRequest, heldOutput } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import type { StreamReader, Usage } from '../../../core/operations/index.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import { usageOfAnswer, usageOfStream } from './metering.ts'

/** How far an attempt had come that was ended because its caller had left. */
export interface LeftAttempt {
  /** Whether the line has the whole request. */
  readonly isSent: boolean
  /** The status of the answer; null before it came. */
  readonly status: number | null
  /** Whether the answer had begun when the caller left. */
  readonly hadBegun: boolean
  /** The reader of a stream; undefined until it begins. */
  readonly reader: StreamReader | undefined
  /** Returns the estimated tokens of the part of a plain answer that came. */
  estimateOutput(): number
}

/** Whether a model may reason without showing all of it. */
export function reasonsUnseen({ model, features }: CallRequest, line: Line): boolean {
  const isListed = model.features?.has('reasoning') || line.features?.has('reasoning')
  return isListed || features.has('reasoning')
}

/**
 * Returns the usage of an attempt that was ended because its caller had left: its input, and the output that came. A model
 * that reasons may have produced more than came. So if its answer had begun, all the output that was held for counts, and
 * so do the images of an answer of images. Null if the line did not have the request, or refused it; and before the output
 * of a call with an Idempotency-Key, because it may be sent again.
 *
 * @param isKeyed whether the call has an Idempotency-Key.
 */
export function usageOfLeft(
  request: CallRequest,
  candidate: Candidate,
  { isSent, status, hadBegun, reader, estimateOutput }: LeftAttempt,
  isKeyed: boolean,
): Usage | null {
  if (!isSent || (status !== null && status !== 200)) return null
  const worksUnseen = hadBegun && reasonsUnseen(request, candidate.line)
  if (isKeyed && !worksUnseen && !hasProduced(reader)) return null
  const held = heldOutput(request)
  if (!reader) {
    const isByPiece = request.operation.priceUnit === 'images'
    const usage = {
      ...(isByPiece && { images: hadBegun ? request.units : 0 }),
      ...(!hadBegun && { webSearches: 0 }),
    }
    const isAll = worksUnseen || (isByPiece && hadBegun)
    const output = isAll || held === 0 ? held : Math.min(held, estimateOutput())
    const least = { usage, estimateOutput: () => output }
    return { ...usageOfAnswer(request, least, candidate), source: 'estimated' }
  }
  const usage = usageOfStream(request, reader, candidate)
  return usage.source === 'measured' || !worksUnseen || usage.outputTokens >= held
    ? usage
    : { ...usage, outputTokens: held, source: 'estimated' }
}

function hasProduced(reader: StreamReader | undefined): boolean {
  return reader?.substance === 'output' || reader?.substance === 'refusal'
}

import type { Strategy } from 'express-model-gateway'

/**
 * The cheapest line among those that are fast enough; the others behind them, the fastest first.
 *
 * @param boundMs the longest time to first byte that will do, in milliseconds.
 * @throws RangeError when it is no positive number.
 */
export function cheapestWithin(boundMs: number): Strategy {
  if (!(boundMs > 0))
    throw new RangeError('cheapestWithin: the bound must be a positive number of milliseconds')
  // It has a name, because that stands in the trace of each call.
  return function cheapestWithin(candidates, { request }) {
    const input = BigInt(request?.estimatedInputTokens ?? 1000)
    const output = BigInt(request?.maxOutputTokens ?? 500)
    return (
      candidates
        // Looked at once each: what is expected of a line changes from one moment to the next.
        .map((candidate) => {
          const { inputPerMillion, outputPerMillion } = candidate.price
          const ms = candidate.state.expectedFirstByteMs
          const cost = inputPerMillion * input + outputPerMillion * output
          return { candidate, ms, cost, late: ms > boundMs }
        })
        .sort((a, b) => {
          if (a.late !== b.late) return a.late ? 1 : -1
          return a.late ? a.ms - b.ms : Number(a.cost - b.cost)
        })
        .map(({ candidate }) => candidate)
    )
  }
}

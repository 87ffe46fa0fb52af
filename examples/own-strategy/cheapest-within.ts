import type { Strategy } from 'express-model-gateway'

/**
 * Returns a strategy that orders the lines that are fast enough by price, and all others behind them by speed.
 *
 * @param boundMs the longest acceptable time to first byte, in milliseconds.
 * @throws RangeError if it is not a positive number.
 */
export function cheapestWithin(boundMs: number): Strategy {
  if (!(boundMs > 0))
    throw new RangeError('cheapestWithin: the bound must be a positive number of milliseconds')
  // The trace of each call shows the name of this function.
  return function cheapestWithin(candidates, { request }) {
    const input = BigInt(request?.estimatedInputTokens ?? 1000)
    const output = BigInt(request?.maxOutputTokens ?? 500)
    return (
      candidates
        // Read once per line, because the expected time can change at any moment.
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

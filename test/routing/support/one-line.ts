import type { Candidate } from '../../../lib/routing/candidates/candidate.ts'

export const PRICE = { inputPerMillion: 1n, outputPerMillion: 2n, perRequest: 3n, perImage: 4n }

export interface Given {
  price?: object
  line?: object
  state?: object
  missing?: string
  contextWindow?: number
}

/** A line that serves everything, but for what is given. `restMs` and `circuit` are those of the model on it. */
export function candidate(id: string, { line, state, ...others }: Given = {}): Candidate {
  const circuit = circuitThat('closed', true, 0)
  const { enabled = true, ...given } = { ...state } as { enabled?: boolean }
  const modelState = { restMs: 0, circuit, ...given }
  return {
    line: { id, provider: 'openai', protocol: 'openai', ...line },
    price: PRICE,
    contextWindow: undefined,
    missing: undefined,
    ...others,
    state: { enabled, circuit },
    modelState,
    rest: modelState,
  } as unknown as Candidate
}

/** A circuit in a given state. */
export const circuitThat = (state: string, admits: boolean, retryAfterMs: number) => ({
  admits: () => admits,
  stateFor: () => state,
  state,
  retryAfterMs: () => retryAfterMs,
  isOpenedByPeer: () => false,
})

/** The state of a line whose circuit is open. */
export const opened = () => ({ circuit: circuitThat('open', false, 700) })

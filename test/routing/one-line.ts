import type { Candidate } from '../../lib/routing/candidates/candidate.ts'

export const PRICE = { inputPerMillion: 1n, outputPerMillion: 2n, perRequest: 3n, perImage: 4n }

export interface Given {
  line?: object
  state?: object
  missing?: string
  contextWindow?: number
}

/** A line that serves everything, but for what is given. */
export function candidate(id: string, { line, state, ...others }: Given = {}): Candidate {
  const circuit = { admits: true, state: 'closed', retryAfterMs: 0 }
  return {
    line: { id, provider: 'openai', protocol: 'openai', ...line },
    price: PRICE,
    contextWindow: undefined,
    missing: undefined,
    ...others,
    state: { enabled: true, restMs: 0, circuit, ...state },
  } as unknown as Candidate
}

/** The state of a line whose circuit is open. */
export const opened = () => ({ circuit: { admits: false, state: 'open', retryAfterMs: 700 } })

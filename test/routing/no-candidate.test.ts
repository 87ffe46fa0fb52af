import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallRequest, Elimination } from '../../lib/core/call/index.ts'
import { GatewayError } from '../../lib/core/errors/index.ts'
import type { Candidate } from '../../lib/routing/candidates/candidate.ts'
import {
  type FilteredCall,
  type FilteredRequest,
  filterCandidates,
  noCandidateError,
} from '../../lib/routing/candidates/filters.ts'

const PRICE = { inputPerMillion: 1n, outputPerMillion: 2n, perRequest: 3n, perImage: 4n }

interface Given {
  line?: object
  state?: object
  missing?: string
  contextWindow?: number
}

/** A line that serves everything, but for what is given. */
function candidate(id: string, { line, state, ...others }: Given = {}): Candidate {
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

function request(members: object = {}): CallRequest {
  const nothing = { features: new Set(), windowTokens: 0, maxOutputTokens: undefined, constraint: undefined }
  return { operation: { name: 'chat' }, ...nothing, ...members } as unknown as CallRequest
}

const NOBODY: FilteredCall = { principal: null, pin: null }
const _opened = () => ({ circuit: { admits: false, state: 'open', retryAfterMs: 700 } })

/** Which filter removes a line, beside one that serves everything. */
function _removedBy(given: Given, asked: Partial<FilteredRequest> = {}, call: FilteredCall = NOBODY) {
  const eliminated: Elimination[] = []
  const lines = [candidate('other'), candidate('line', given)]
  const all = { request: request(), ...asked }
  const left = filterCandidates(lines, call, all, eliminated)
  assert.deepEqual(
    left.map(({ line }) => line.id),
    eliminated.length === 0 ? ['other', 'line'] : ['other'],
  )
  return eliminated.length === 0 ? undefined : [eliminated[0]?.reason, eliminated[0]?.detail]
}

describe('a call whose lines are all removed', () => {
  /** What is said where nobody knows. */
  const unknownWait = (code: 'upstream_rate_limited' | 'circuit_open') => new GatewayError(code).retryAfterMs
  const gone = (line: string, reason: Elimination['reason']): Elimination => ({ line, reason, detail: '' })
  const told = (candidates: readonly Candidate[], ...eliminated: Elimination[]) => {
    const { code, retryAfterMs } = noCandidateError(candidates, eliminated)
    return [code, retryAfterMs]
  }

  it('is refused by the last filter that removed one, wherever that stands among them', () => {
    assert.deepEqual(told([], gone('a', 'region'), gone('b', 'feature'), gone('c', 'disabled')), [
      'unsupported_feature',
      undefined,
    ])
    assert.deepEqual(told([], gone('a', 'context_window'), gone('b', 'region')), [
      'context_too_long',
      undefined,
    ])
    assert.deepEqual(told([], gone('a', 'region'), gone('b', 'price_ceiling')), ['no_candidate', undefined])
    assert.deepEqual(told([]), ['no_candidate', undefined])
  })

  it('is told the shortest wait of the lines that this filter removed', () => {
    const resting = [300, 200, 0].map((restMs, i) => candidate(`r${i}`, { state: { restMs } }))
    const open = [900, 700].map((retryAfterMs, i) =>
      candidate(`c${i}`, { state: { circuit: { admits: false, state: 'open', retryAfterMs } } }),
    )
    const all = [...resting, ...open, candidate('free', { state: { restMs: 1 } })]
    const rests = resting.map(({ line }) => gone(line.id, 'resting'))
    assert.deepEqual(told(all, ...rests, gone('free', 'disabled')), ['upstream_rate_limited', 200])
    assert.deepEqual(told(all, ...rests, gone('c0', 'circuit_open')), ['circuit_open', 900])
    assert.deepEqual(told(all, gone('c1', 'circuit_open'), gone('c0', 'circuit_open')), ['circuit_open', 700])
    assert.deepEqual(told(all, gone('r2', 'resting')), [
      'upstream_rate_limited',
      unknownWait('upstream_rate_limited'),
    ])
    assert.deepEqual(
      told(all, gone('free', 'circuit_open')),
      ['circuit_open', unknownWait('circuit_open')],
      'it admits by now',
    )
  })

  it('is told what of its request cannot be asked of another protocol', () => {
    const { code, param, message } = noCandidateError([], [gone('a', 'protocol')], {
      param: 'top_k',
    } as never)
    assert.deepEqual([code, param], ['unsupported_feature', 'top_k'])
    assert.match(message, /has no counterpart for top_k/)
  })
})

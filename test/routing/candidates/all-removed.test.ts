import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Elimination } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import type { Candidate } from '../../../lib/routing/candidates/candidate.ts'
import { noCandidateError } from '../../../lib/routing/candidates/filters.ts'
import { candidate, circuitThat, opened } from '../support/one-line.ts'

describe('a call whose lines are all removed', () => {
  /** The wait that is sent where the end of a wait is not known. */
  const unknownWait = (code: 'upstream_rate_limited' | 'circuit_open') => new GatewayError(code).retryAfterMs
  const gone = (line: string, reason: Elimination['reason']): Elimination => ({ line, reason, detail: '' })
  const told = (candidates: readonly Candidate[], ...eliminated: Elimination[]) => {
    const { code, retryAfterMs } = noCandidateError(candidates, eliminated, '')
    return [code, retryAfterMs]
  }

  it('is refused with the code of the last filter that removed one, at any position of that line', () => {
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
    const open = candidate('a', { state: opened() })
    assert.deepEqual(told([open], gone('a', 'region')), ['region_denied', undefined])
  })

  it('returns the shortest wait of the lines that this filter removed', () => {
    const resting = [300, 200, 0].map((restMs, i) => candidate(`r${i}`, { state: { restMs } }))
    const open = [900, 700].map((retryAfterMs, i) =>
      candidate(`c${i}`, { state: { circuit: circuitThat('open', false, retryAfterMs) } }),
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

  for (const [reason, says] of [
    ['provider_constraint', /its provider constraint is too strict/],
    ['pinned', /stores an object of this request/],
    ['disabled', /are disabled/],
    ['protocol', /serves this endpoint/],
    ['price_ceiling', /cost more than "max_price"/],
  ] as const)
    it(`returns the reason why no line is left: ${reason}`, () => {
      const { code, message } = noCandidateError([], [gone('secret-line', reason)], '')
      assert.equal(code, 'no_candidate')
      assert.match(message, says)
      assert.match(message, /The routing trace in the call log says what removed each line\.$/)
      assert.doesNotMatch(message, /secret-line/)
    })

  it('returns the members of its request that have no counterpart in another protocol', () => {
    const { code, param, message } = noCandidateError([], [gone('a', 'protocol')], '', {
      param: 'top_k',
    } as never)
    assert.deepEqual([code, param], ['unsupported_feature', 'top_k'])
    assert.match(message, /has no counterpart for top_k/)
  })
})

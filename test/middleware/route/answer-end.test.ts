import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { type AnswerEnd, outcomeOf } from '../../../lib/middleware/route/attempt/answer-end.ts'

const EXPIRED = new GatewayError('key_expired')
const SERVED = { kind: 'served', unsent: '' } as AnswerEnd
const ABANDONED: AnswerEnd = { kind: 'abandoned', reader: undefined }
const FAILED = { kind: 'failed', failure: { code: 'upstream_timeout' } } as AnswerEnd
const LEFT = [499, 'client_closed_request', 'interrupted'] as const

for (const [what, end, left, endedBy, outcome] of [
  ['served whole', SERVED, false, undefined, [200, null, 'completed']],
  ['served whole, and its key is over by now', SERVED, false, EXPIRED, [200, null, 'completed']],
  ['served whole to nobody', SERVED, true, undefined, LEFT],
  ['broken off', FAILED, false, undefined, [200, 'upstream_timeout', 'interrupted']],
  ['broken off, with nobody left', FAILED, true, EXPIRED, [200, 'upstream_timeout', 'interrupted']],
  ['ended because its key is over', ABANDONED, false, EXPIRED, [200, 'key_expired', 'interrupted']],
  ['left by its caller', ABANDONED, true, undefined, LEFT],
] as const)
  it(`an answer that was ${what} has this outcome: ${outcome.join(', ')}`, () => {
    const { status, errorCode, finish } = outcomeOf(end, left, endedBy)
    assert.deepEqual([status, errorCode, finish], outcome)
  })

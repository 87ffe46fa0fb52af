import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import { idempotencyOutcome } from '../../../lib/middleware/telemetry/idempotency-outcome.ts'

it('the outcome of a call with an Idempotency-Key is that of its claim, else that of its refusal', () => {
  const outcomeOf = (state: string | null, errorCode: string | null = null) =>
    idempotencyOutcome({
      idempotency: { claim: state && { state } },
      outcome: { errorCode },
    } as unknown as OpenCall)
  const rows: [state: string | null, code: string | null, outcome: string][] = [
    ['completed', null, 'ran'],
    ['settling', null, 'ran'],
    ['running', null, 'freed'],
    ['releasing', null, 'freed'],
    ['released', 'idempotency_key_in_use', 'freed'],
    ['lost', 'idempotency_key_in_use', 'lost'],
    [null, 'idempotency_key_in_use', 'in_use'],
    [null, 'idempotency_key_replayed', 'replayed'],
    [null, 'idempotency_key_reused', 'reused'],
    [null, 'internal_error', 'unclaimed'],
    [null, null, 'unclaimed'],
  ]
  for (const [state, code, outcome] of rows)
    assert.equal(outcomeOf(state, code), outcome, `${state}, ${code}`)
  assert.equal(idempotencyOutcome({ idempotency: null, outcome: null } as unknown as OpenCall), 'unclaimed')
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { LineRegistry } from '../../../lib/middleware/route/index.ts'
import type { Circuit } from '../../../lib/routing/lines/circuit.ts'
import { lineOf } from '../support/line-processes.ts'

const RESET_MS = 20_000

it('the status of a line contains the longest time until a circuit lets a probe through, and until a rest ends', async (t) => {
  let now = 1_000_000
  t.mock.method(performance, 'now', () => now)
  const lines = new LineRegistry()
  t.after(() => lines.close())
  const line = lineOf({ resetMs: RESET_MS }, { m: 'u', n: 'v' })
  const state = lines.stateOf(line)
  const waits = () => {
    const { retry_after_ms, rest_ms } = lines.status(line)
    return [retry_after_ms, rest_ms]
  }
  const opens = (circuit: Circuit) => {
    for (let i = 0; i < 4; i++) circuit.fail('x')
  }
  assert.deepEqual(waits(), [null, 0])
  opens(state.modelState('m').circuit)
  assert.deepEqual(waits(), [RESET_MS, 0])
  now += 5000
  assert.deepEqual(waits(), [15_000, 0])
  opens(state.modelState('n').circuit)
  state.modelState('n').rest(3000)
  assert.deepEqual(waits(), [RESET_MS, 3000])
  state.modelState('m').rest(7000)
  now += 1000
  assert.deepEqual(waits(), [RESET_MS - 1000, 6000])
})

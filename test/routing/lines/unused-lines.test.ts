import assert from 'node:assert/strict'
import { it } from 'node:test'
import { LineRegistry } from '../../../lib/middleware/route/index.ts'
import { lineOf } from '../support/line-processes.ts'

it('the figures of an unused line are zero, and reading them creates no state', async (t) => {
  const lines = new LineRegistry()
  t.after(() => lines.close())
  const line = lineOf()
  const unused = {
    inFlight: 0,
    connections: 0,
    availability: 'unknown',
    failure: null,
    circuit: 'closed',
    circuitChanges: { closed: 0, open: 0, half_open: 0 },
  }
  assert.deepEqual(lines.reading(line), unused)
  lines.stateOf(line).inFlight = 3
  assert.equal(lines.reading(line).inFlight, 3)
  assert.deepEqual(lines.reading(lineOf()), unused, 'of another line with the same members')
})

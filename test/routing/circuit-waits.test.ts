import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Circuit } from '../../lib/routing/lines/circuit.ts'

const SETTINGS = { errorPercent: 1, minimumCalls: 1, windowMs: 60_000, resetMs: 1000 }

/** Whose calls fail before the wait is told: one account's failures open the circuit for that account only. */
const FAILING = [['acme'], ['acme', 'globex']] as const

describe('who waits as a circuit has told', () => {
  for (const accounts of FAILING)
    it(`may probe, wherever its process was stopped for a moment: ${accounts.join(' and ')}`, (t) => {
      const time = t.mock.method(performance, 'now')
      for (let stoppedAt = 0; stoppedAt < 20; stoppedAt++)
        for (const stoppedMs of [0.5, 7, 90]) {
          let [now, readings] = [5000, 0]
          time.mock.mockImplementation(() => {
            if (readings++ % 20 === stoppedAt) now += stoppedMs
            return now
          })
          const circuit = new Circuit(SETTINGS)
          t.after(() => circuit.close())
          const entries = accounts.map((account) => [circuit.enter(account), account] as const)
          for (const [entry, account] of entries) circuit.fail(entry, account)
          for (let round = 0; round < 5; round++) {
            const wait = circuit.retryAfterMs('acme')
            assert.ok(wait > 0 && wait <= SETTINGS.resetMs, `${wait} ms`)
            now += wait
            assert.equal(circuit.admits('acme'), true, `stopped for ${stoppedMs} ms at reading ${stoppedAt}`)
            circuit.fail(circuit.enter('acme'), 'acme')
          }
        }
    })
})

import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { ERROR_CODES } from '../../lib/core/errors/index.ts'
import { OPERATIONS } from '../../lib/core/operations/index.ts'
import { translationOf } from '../../lib/core/translate/index.ts'
import { envelopeOf } from '../support/answer-bodies.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { ENDPOINTS, PASS_THROUGH_ENDPOINTS, VIDEO_ENDPOINTS } from '../support/endpoints.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'
import { callerAt, PRICE, PROTOCOLS, startAssembled } from './assembled-gateway.ts'
import { REFUSALS } from './refusals.ts'

/** The callers behind those that are refused. */
const PAYING = REFUSALS.length
const PENNILESS = PAYING + 1
const CALLERS = [
  ...REFUSALS.map(({ caller = {} }) => caller),
  {},
  { account: { balance: '0' }, key: { quota: '0' } },
]

const ALL = [...ENDPOINTS, ...VIDEO_ENDPOINTS, ...PASS_THROUGH_ENDPOINTS]

for (const endpoint of ALL) {
  const { path, protocol, free, unread } = endpoint
  const isFirst = ALL.find((other) => other.protocol === protocol) === endpoint

  describe(`a call of ${path}`, async () => {
    const cleanUp = cleaningUp()
    const upstream = await startUpstream(endpoint.answer)
    cleanUp.after(() => upstream.close())
    const gateway = await startAssembled(cleanUp, endpoint, upstream, CALLERS)
    beforeEach(() => {
      upstream.requests.length = 0
      upstream.script = endpoint.answer
    })

    it(`is answered, logged and ${free ? 'never charged, whatever there is' : 'charged'}`, async () => {
      const bringBack = free ? gateway.takeLedgerAway() : () => {}
      const response = await gateway.send(callerAt(free ? PENNILESS : PAYING))
      assert.equal(response.status, 200, await response.clone().text())
      await response.arrayBuffer()
      bringBack()
      assert.equal(upstream.requests[0]?.path, path)
      const entry = await gateway.entryOf(response)
      assert.equal(entry.outcome, 'completed')
      assert.deepEqual(
        [entry.billing?.reserved, entry.billing?.charged],
        free ? [undefined, undefined] : [PRICE, PRICE],
      )
      if (free) assert.equal(entry.usage, null)
    })

    const operation = OPERATIONS.find((one) => one.path === path)

    it('has no candidate if its only line speaks a protocol without a translation', async () => {
      for (const other of PROTOCOLS) {
        if (other === protocol || endpoint.alsoOn?.includes(other)) continue
        if (operation && translationOf(operation, { protocol: other })) continue
        const response = await gateway.send(callerAt(PAYING), other)
        // A count needs no line: the gateway estimates it.
        const isEstimated = operation?.estimatedAnswer !== undefined
        assert.equal(response.status, isEstimated ? 200 : 503)
        const entry = await gateway.entryOf(response)
        assert.equal(entry.error_code, isEstimated ? null : 'no_candidate')
        assert.deepEqual(
          entry.routing?.eliminated.map(({ reason }) => reason),
          ['protocol'],
        )
      }
      assert.equal(upstream.requests.length, 0)
    })

    for (const [at, refusal] of REFUSALS.entries()) {
      const { code, when, headers = callerAt(at), before, money, read, further } = refusal
      if ((money && free) || (read && unread) || (further && !isFirst)) continue
      it(`is refused in its envelope: ${code}, ${when}`, async () => {
        const bringBack = before === 'the ledger goes away' ? gateway.takeLedgerAway() : () => {}
        if (before === 'a call') assert.equal((await gateway.send(headers)).status, 200)
        let running: Promise<Response> | undefined
        let finish = (): void => {}
        if (before === 'a running call') {
          upstream.script = (...request) => {
            finish = () => void endpoint.answer(...request)
          }
          running = gateway.send(headers)
          await until(() => upstream.requests.length === 1, 'the running call')
        }
        const asked = upstream.requests.length

        const response = await gateway.send(headers)

        const expected = ERROR_CODES[code]
        assert.equal(response.status, expected.status)
        const body = await envelopeOf(response)
        assert.equal(body.request_id, response.headers.get('x-request-id'))
        if (protocol !== 'anthropic') {
          assert.equal(body.error.code, code)
          assert.equal('type' in body, false)
        } else {
          assert.equal(body.type, 'error')
          assert.equal('code' in body.error, false)
        }
        assert.equal(typeof body.error.type, 'string')
        assert.equal(typeof body.error.message, 'string')
        const retryAfter = response.headers.get('retry-after')
        if (expected.status === 429) assert.ok(Number(retryAfter) >= 1, `Retry-After: ${retryAfter}`)
        assert.equal(upstream.requests.length, asked, 'no upstream was asked')

        finish()
        if (running) assert.equal((await running).status, 200)
        bringBack()
        const entry = await gateway.entryOf(response)
        assert.equal(entry.error_code, code)
        assert.equal(entry.path, path)
        assert.equal(entry.usage, null)
        assert.equal(entry.billing?.charged ?? null, null)
      })
    }
  })
}

import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { failureOfError, failureOfStatus } from '../../../lib/routing/attempt/classify-failure.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { answerJson, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { faultGateway, priceOf } from '../support/fault-gateway.ts'
import { NAMED, noticed, TABLE } from '../support/fault-rows.ts'
import { closedBy } from '../support/line-states.ts'

const MODELS = ['chat', 'other']
/** The charge for the usage that the working line reports. */
const ANSWERED = priceOf({ input_tokens: 7, output_tokens: 3 })

describe('the error of an upstream', () => {
  for (const [form, rows, failureOf] of [
    ['plain', TABLE, failureOfStatus],
    [
      'under 200',
      NAMED,
      (_status: number, headers: IncomingHttpHeaders, body: unknown) => failureOfError(body, headers),
    ],
  ] as const)
    for (const [what, status, error, code, fault, next, headers = {}] of rows)
      it(`${status} about ${what}, ${form}, is ${code}, ${fault}`, () => {
        const failure = failureOf(status, headers, { error })
        assert.deepEqual([failure.code, failure.fault ?? 'none', failure.retryable], [code, fault, next])
      })
})

describe('the answer of an upstream', async () => {
  const cleanUp = cleaningUp()
  const bad = await startUpstream()
  cleanUp.after(() => bad.close())
  const good = await startUpstream()
  cleanUp.after(() => good.close())

  for (const [form, rows] of [
    ['plain', noticed(TABLE)],
    ['plain under 200', noticed(NAMED)],
    ['streamed under 200', noticed(NAMED)],
  ] as const) {
    for (const [what, status, error, code, fault, next, headers = {}, restMs] of rows) {
      it(`${status} about ${what}, ${form}: ${code}, ${fault}`, async (t) => {
        const mode = form === 'streamed under 200' ? OPENAI_STREAM : OPENAI
        bad.script = async (res) => {
          if (form === 'plain') answerJson(res, status, { error }, headers)
          else if (form === 'plain under 200') answerJson(res, 200, { error }, headers)
          else {
            for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
            await stream(res, [`data: ${JSON.stringify({ error })}\n\n`])
          }
        }
        bad.requests.length = 0
        good.requests.length = 0
        const gateway = await faultGateway(t, [bad.url, good.url], 1)
        const first = await gateway.ask('x', mode, { provider: { only: ['line-0'] } })
        assert.equal(first.errorCode, code)
        const entry = await gateway.entry(first)
        assert.deepEqual(
          entry.routing?.attempts.map(({ outcome, upstream_status }) => [outcome, upstream_status]),
          [[code, form === 'plain' ? status : 200]],
        )
        assert.deepEqual([entry.usage, entry.billing?.charged], [null, null])
        assert.deepEqual(gateway.shut(), closedBy(fault, MODELS, ['x']), 'only to its account')
        assert.equal(bad.requests.length, 1)
        if (restMs !== undefined) {
          const [rest, ...others] = gateway.resting()
          assert.deepEqual([rest?.on, others], ['line-0 chat', []])
          assert.ok(rest && rest.rest_ms <= restMs && rest.rest_ms > restMs - 900, `${rest?.rest_ms}`)
          assert.equal(first.headers.get('retry-after'), String(restMs / 1000))
          gateway.lift()
        }
        assert.deepEqual(gateway.resting(), [])
        // Another account still gets through to the line, and its failure opens the circuit for all.
        const second = await gateway.ask('y', mode)
        assert.equal(bad.requests.length, 2)
        assert.equal(second.errorCode, next ? undefined : code)
        assert.equal(good.requests.length, next ? 1 : 0)
        assert.deepEqual(gateway.shut(), closedBy(fault, MODELS, ['x', 'y']))
        assert.deepEqual(await gateway.spent(), { x: 0n, y: next ? ANSWERED : 0n })
      })
    }
  }
})

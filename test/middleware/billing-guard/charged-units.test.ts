import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PER_TOKEN, TOKENS, times, UNIT_ROWS } from '../../ledger/support/unit-rows.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { completionAnswer } from '../../support/endpoints.ts'
import { readExchange } from '../../support/exchange.ts'
import { answerJson, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { billedGateway } from './billed-gateway.ts'

describe('a call is charged', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  for (const { what, path, kind, price, model, body, answer, usage, reserved, charged, items } of UNIT_ROWS) {
    it(`${what} (${path})`, async (t) => {
      upstream.script = (res) => answerJson(res, 200, answer)
      const gateway = await billedGateway(t, {
        lines: [{ url: upstream.url, price: {} }],
        model: { kind, price, ...model },
        balance: '100000',
      })
      const got = await readExchange(await gateway.post(path, { model: 'chat', ...body }))
      assert.equal(got.status, 200, got.text)
      const entry = await gateway.entry(got.requestId)
      assert.deepEqual(entry.usage, usage)
      assert.equal(entry.billing?.reserved, reserved)
      assert.equal(entry.billing?.charged, charged)
      assert.deepEqual(
        entry.billing?.items.map(({ unit }) => unit),
        items,
      )
      assert.deepEqual(await gateway.books(), { spent: charged, charges: 1 })
    })
  }

  it('by what a stream of text reports, or by an estimate of it where the stream breaks off (/v1/completions)', async (t) => {
    const price = { outputPerMillion: '1000000' }
    const choice = (text: string, finish_reason: string | null) => ({ text, index: 0, finish_reason })
    const event = (extra: object) =>
      `data: ${JSON.stringify(completionAnswer('', { usage: null, ...extra }))}\n\n`
    const said = times(3).map((text) => event({ choices: [choice(text, null)] }))
    const last = [
      event({ choices: [choice('', 'stop')] }),
      event({ choices: [], usage: { completion_tokens: 70, prompt_tokens: 1 } }),
    ]
    const events = [[...said, ...last, 'data: [DONE]\n\n'], said]
    for (const [i, [output, outcome]] of [
      [70, 'completed'] as const,
      [3 * TOKENS, 'interrupted'] as const,
    ].entries()) {
      upstream.script = (res) => stream(res, events[i] ?? [])
      const gateway = await billedGateway(t, {
        lines: [{ url: upstream.url, price: {} }],
        model: { price },
        balance: '100000',
      })
      const asked = { model: 'chat', prompt: 'a', stream: true, max_tokens: 99 }
      const got = await readExchange(await gateway.post('/v1/completions', asked))
      const entry = await gateway.entry(got.requestId)
      assert.deepEqual([entry.outcome, entry.usage?.output_tokens], [outcome, output])
      assert.deepEqual(await gateway.books(), { spent: String(output), charges: 1 })
    }
  })

  it('nothing for a count of tokens, which the ledger does not hear of', async (t) => {
    upstream.script = (res) => answerJson(res, 200, { input_tokens: 12 })
    const gateway = await billedGateway(t, {
      lines: [{ url: upstream.url, protocol: 'anthropic', price: {} }],
      model: { price: { ...PER_TOKEN, perRequest: '1' } },
      balance: '0',
    })
    const messages = [{ role: 'user', content: 'hi' }]
    const got = await readExchange(
      await gateway.post('/v1/messages/count_tokens', { model: 'chat', messages }),
    )
    assert.equal(got.status, 200, got.text)
    const { usage, billing, outcome } = await gateway.entry(got.requestId)
    assert.deepEqual([usage, billing, outcome], [null, null, 'completed'])
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})

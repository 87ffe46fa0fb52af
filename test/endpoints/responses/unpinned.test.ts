import assert from 'node:assert/strict'
import { it } from 'node:test'
import { billedGateway } from '../../middleware/billing-guard/billed-gateway.ts'
import { readExchange } from '../../support/exchange.ts'
import { startKeepingUpstream } from '../../support/responses-upstream.ts'

it('a chain that does not know which line has what goes on from nothing', async (t) => {
  const upstream = await startKeepingUpstream('one')
  t.after(() => upstream.close())
  const gateway = await billedGateway(t, { lines: [{ url: upstream.url }] })
  const ask = async (body: object) =>
    readExchange(await gateway.post('/v1/responses', { model: 'chat', input: 'hi', ...body }))
  const made = await ask({})
  assert.equal(made.status, 200)
  for (const stream of [false, true]) {
    const refused = await ask({ previous_response_id: 'resp_one_1', stream })
    assert.equal(refused.status, 400)
    assert.equal(refused.errorCode, 'unsupported_feature')
    assert.equal(refused.envelope().error.param, 'previous_response_id')
  }
  assert.equal(upstream.requests.length, 1)
  assert.equal((await ask({ previous_response_id: null })).status, 200)
})

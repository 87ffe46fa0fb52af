import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { responsesGateway } from '../../endpoints/responses/accounts.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { doubledTexts } from '../../support/doubled-members.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { chatBody, KEY, messageBody } from '../../support/gateway.ts'
import { CHATS, MESSAGES, RESPONSES, storeOf, twoUpstreams } from '../../support/reference-rows.ts'

const ENDPOINTS = [
  ['/v1/responses', 'openai', { model: 'chat', input: 'hi' }, RESPONSES],
  ['/v1/messages', 'anthropic', messageBody(), MESSAGES],
  ['/v1/chat/completions', 'openai', chatBody(), CHATS],
] as const

/** A body that names an own thing, in all texts in which a member, at any depth, stands twice and first names another’s. */
const textsOf = ([base, rows]: readonly [object, typeof RESPONSES]): string[] =>
  rows.flatMap(([, , body]) => doubledTexts({ ...base, ...body('own-0') }, { ...base, ...body('foreign') }))

describe('a member that stands twice hides nothing', () => {
  for (const [path, protocol, base, rows] of ENDPOINTS) {
    it(`${path}: it is refused, and no line is asked`, async (t) => {
      const [one, two] = await twoUpstreams(t)
      const kept = await storeOf(rows.map(([kind]) => kind))
      const lines = [one, two].map(({ url }) => ({ url, protocol }))
      const gateway = await responsesGateway(t, { lines, resourceStore: kept })
      const texts = textsOf([base, rows])
      assert.ok(texts.length > 50)
      for (const text of texts) {
        const refused = await fetch(gateway.url + path, {
          method: 'POST',
          body: text,
          headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        })
        const said = await refused.text()
        assert.equal(refused.status, 400, text)
        assert.match(said, /occurs twice/, text)
      }
      assert.equal(one.requests.length + two.requests.length, 0)
    })
  }

  it('a path that is passed on: the same', async (t) => {
    const [one, two] = await twoUpstreams(t)
    const rows = [...RESPONSES, ...MESSAGES, ...CHATS]
    const resources = new UpstreamResources({ store: await storeOf(rows.map(([kind]) => kind)) })
    t.after(() => resources.close())
    const rules = [{ path: '/v1/odd/*rest', lines: ['line-0', 'line-1'] }]
    const gateway = await forwardGateway(t, { lines: [one.url, two.url], rules, resources })
    for (const [i, text] of textsOf([{}, rows]).entries()) {
      const type = ['application/json', 'text/plain', 'unknown/one'][i % 3] as string
      const refused = await gateway.ask('/v1/odd/thing', {
        method: 'POST',
        body: Buffer.from(i % 2 === 0 ? text : `\uFEFF${text}`),
        headers: { 'content-type': type },
      })
      const { error } = await envelopeOf(refused)
      assert.equal(error.code, 'invalid_request', text)
      assert.match(error.message, /occurs twice/, text)
    }
    assert.equal(one.requests.length + two.requests.length, 0)
  })
})

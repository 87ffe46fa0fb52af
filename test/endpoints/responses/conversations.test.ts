import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { readExchange } from '../../support/exchange.ts'
import { messageItem, responseBody } from '../../support/responses-upstream.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'

const CONVERSATIONS = '/v1/conversations'
const RESPONSES = '/v1/responses'

describe('a response in a conversation', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res, { path }) =>
    path === CONVERSATIONS
      ? answerJson(res, 200, { id: 'conv_1', object: 'conversation' })
      : answerJson(res, 200, responseBody([messageItem('Hello')])),
  )
  cleanUp.after(() => upstream.close())
  const line = { provider: 'openai', protocol: 'openai', baseUrl: `${upstream.url}/v1` }
  const { send } = await assembledGateway(cleanUp, {
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [{ ...line, id: 'l', endpoints: ['responses'], models: { chat: 'chat' } }],
    passThrough: [{ path: CONVERSATIONS, lines: ['l'] }],
  })
  const create = async (body: object) => readExchange(await send(RESPONSES, { model: 'chat', ...body }))

  it('needs no input, because the conversation has items', async () => {
    const items = [{ type: 'message', role: 'user', content: 'hi' }]
    assert.equal((await send(CONVERSATIONS, { items })).status, 200)
    for (const conversation of ['conv_1', { id: 'conv_1' }]) {
      const answer = await create({ conversation })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(upstream.requests.at(-1)?.json, { model: 'chat', conversation })
    }
  })

  it('is refused without an input where the conversation is not of the account, or there is none', async () => {
    const before = upstream.requests.length
    for (const [body, code] of [
      [{ conversation: 'conv_2' }, 'not_found'],
      [{ prompt: { id: 'pmpt_1' } }, 'not_found'],
      [{ conversation: null, prompt: null }, 'invalid_request'],
    ] as const)
      assert.equal((await create(body)).errorCode, code, JSON.stringify(body))
    assert.equal(upstream.requests.length, before)
  })
})

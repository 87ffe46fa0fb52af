import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { KEY } from '../support/gateway.ts'
import { chatAnswer, chatEvents, startUpstream } from '../support/scripted-upstream.ts'

const OUTPUT = 900
const usage = { prompt_tokens: 7, completion_tokens: OUTPUT, total_tokens: OUTPUT + 7 }
const GLOBEX = 'sk-globex-1'

/** A gateway with two accounts of 1000 tokens per minute, whose upstream reports 900 tokens of output. */
async function limited(t: Parameters<typeof assembledGateway>[0], tokens: 'input' | 'total' | undefined) {
  const upstream = await startUpstream((res, { json }) => {
    if (json.stream)
      res
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(chatEvents(Array<string>(OUTPUT).fill('a')).join(''))
    else chatAnswer(res, 'Hi', { usage })
  })
  t.after(() => upstream.close())
  const { send } = await assembledGateway(t, {
    ...(tokens && { tokens }),
    accounts: ['acme', 'globex'].map((id) => ({ id, limits: { tpm: 1000 } })),
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_globex', account: 'globex', secret: GLOBEX },
    ],
    models: [{ id: 'chat', kind: 'chat', maxOutputTokens: 2000 }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
    ],
  })
  return {
    upstream,
    async ask({ words = 1, stream = false, secret = KEY } = {}) {
      const messages = [{ role: 'user', content: 'word '.repeat(words) }]
      const headers = { authorization: `Bearer ${secret}` }
      const response = await send('/v1/chat/completions', { model: 'chat', messages, stream }, { headers })
      await response.text()
      return [response.status, Number(response.headers.get('x-ratelimit-remaining-tokens'))]
    },
  }
}

describe('"tokens" in the config of a gateway', () => {
  for (const stream of [false, true])
    it(`"total" counts what ${stream ? 'a stream' : 'an answer'} used, so that the next request of its account is refused`, async (t) => {
      const { ask, upstream } = await limited(t, 'total')
      const [status, left = 0] = await ask({ stream })
      assert.equal(status, 200)
      assert.ok(left > 980, `${left} left at admission`)
      const [next, remaining] = await ask({ words: 200 })
      assert.equal(next, 429)
      assert.equal(remaining, 1000 - OUTPUT - 7)
      assert.equal(upstream.requests.length, 1)
      assert.equal((await ask({ words: 200, secret: GLOBEX }))[0], 200)
    })

  it('counts the estimated input by default', async (t) => {
    const { ask, upstream } = await limited(t, undefined)
    for (let i = 0; i < 3; i++) assert.equal((await ask({ words: 200 }))[0], 200)
    assert.equal(upstream.requests.length, 3)
  })
})

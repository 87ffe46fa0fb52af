import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import OpenAI from 'openai'
import { createApp } from '../../examples/own-chain/app.ts'
import { loadConfig } from '../../lib/core/config/index.ts'
import { LineRegistry } from '../../lib/middleware/route/index.ts'
import { jsonOf } from '../support/answer-bodies.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { listen } from '../support/gateway.ts'
import { chat } from '../support/gateway-process.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../support/scripted-upstream.ts'

describe('a chain of one’s own', () => {
  let broken: ScriptedUpstream
  let whole: ScriptedUpstream
  let server: Server
  let lines: LineRegistry
  let url = ''
  const cleanUp = cleaningUp(afterEach)
  beforeEach(async () => {
    broken = await startUpstream((res) => answerJson(res, 500, { error: { message: 'broken' } }))
    cleanUp.after(() => broken.close())
    whole = await startUpstream((res, { json }) =>
      json.stream ? stream(res, chatEvents(['a', 'b', 'c'])) : chatAnswer(res),
    )
    cleanUp.after(() => whole.close())
    const { catalog } = loadConfig({
      models: [{ id: 'chat-small', kind: 'chat' }],
      lines: [broken, whole].map((upstream, priority) => ({
        id: `line-${priority}`,
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream.url}/v1`,
        priority,
        models: { 'chat-small': 'u' },
      })),
    })
    lines = new LineRegistry()
    cleanUp.after(() => lines.close())
    const tokens = new Map([
      ['ann-1', { name: 'ann', team: 'sales' }],
      ['bob-1', { name: 'bob', team: 'support' }],
    ])
    server = await listen(createApp({ catalog, lines, tokens }))
    cleanUp.after(() => server.close().closeAllConnections())
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  const ask = (content = 'Hello!', token?: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(chat('chat-small', content)),
    })
  const codeOf = async (answer: Response) => (await jsonOf<{ error: { code: string } }>(answer)).error.code
  const usage = async () => jsonOf<Record<string, object>>(await fetch(`${url}/usage`))

  it('lets its own people in and no others, with errors that SDKs understand', async () => {
    const [stranger, former, ann] = [
      await ask('Hello!'),
      await ask('Hello!', 'eve-1'),
      await ask('Hello!', 'ann-1'),
    ]
    assert.deepEqual([stranger.status, await codeOf(stranger)], [401, 'missing_credential'])
    assert.deepEqual([former.status, await codeOf(former)], [401, 'invalid_credential'])
    assert.equal(ann.status, 200)
    assert.match(stranger.headers.get('x-request-id') ?? '', /^req_/)
    assert.equal(whole.requests.length, 1)
  })

  it('asks the next line where the first fails, for the official SDK too', async () => {
    const client = new OpenAI({ apiKey: 'ann-1', baseURL: `${url}/v1`, maxRetries: 0 })
    const streamed = await client.chat.completions.create({
      model: 'chat-small',
      messages: [{ role: 'user', content: 'Hello!' }],
      stream: true,
    })
    let said = ''
    for await (const { choices } of streamed) said += choices[0]?.delta.content ?? ''
    assert.equal(said, 'abc')
    assert.equal(broken.requests.length, 1)
  })

  it('lets no card number out, and counts such a request nowhere', async () => {
    for (let i = 0; i < 6; i++) {
      const refused = await ask('Charge 4111 1111 1111 1111, please', 'ann-1')
      assert.equal(refused.status, 400)
      const said = await refused.text()
      assert.match(said, /content_filtered/)
      assert.doesNotMatch(said, /4111/)
    }
    assert.equal(broken.requests.length + whole.requests.length, 0)
    assert.equal((await ask('Hello!', 'ann-1')).status, 200)
    assert.deepEqual(Object.keys(await usage()), ['sales'])
  })

  it('limits each person by its own calls only', async () => {
    for (let i = 0; i < 5; i++) assert.equal((await ask('Hello!', 'ann-1')).status, 200)
    const refused = await ask('Hello!', 'ann-1')
    assert.deepEqual([refused.status, await codeOf(refused)], [429, 'rate_limited'])
    assert.ok(Number(refused.headers.get('retry-after')) > 50)
    assert.equal((await ask('Hello!', 'bob-1')).status, 200)
  })

  it('counts what each team has used', async () => {
    await (await ask('Hello!', 'ann-1')).text()
    await (await ask('Hello!', 'ann-1')).text()
    await (await ask('Hello!', 'bob-1')).text()
    assert.deepEqual(await usage(), {
      sales: { calls: 2, inputTokens: 14, outputTokens: 6 },
      support: { calls: 1, inputTokens: 7, outputTokens: 3 },
    })
  })

  it('shows its models to its people', async () => {
    assert.equal((await fetch(`${url}/v1/models`)).status, 401)
    const listed = await fetch(`${url}/v1/models`, { headers: { authorization: 'Bearer bob-1' } })
    const { data } = await jsonOf<{ data: { id: string }[] }>(listed)
    assert.deepEqual(
      data.map(({ id }) => id),
      ['chat-small'],
    )
  })
})

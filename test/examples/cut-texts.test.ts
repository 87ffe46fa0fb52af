import assert from 'node:assert/strict'
import { it } from 'node:test'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { answerJson, startUpstream } from '../support/scripted-upstream.ts'

const cleanUp = cleaningUp()
/** Half a character of four bytes, as a JSON text has it: some readers refuse the whole text for it. */
const HALF = /(?<!\\)(?:\\\\)*\\ud[89a-f]/i

const model = (id: string, kind: string) => ({ id, kind })
const line = (id: string, protocol: string, models: Record<string, string>) => ({
  ...{ id, provider: id, protocol, baseUrl: 'http://127.0.0.1:9/v1', models },
})
const config = {
  models: [model('chat', 'chat'), model('claude', 'chat'), model('video', 'video')],
  lines: [
    line('a', 'openai', { chat: 'm' }),
    line('b', 'anthropic', { claude: 'm' }),
    line('c', 'ark', { video: 'm' }),
  ],
}
const chat = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] }

it('a text of a caller is cut, wherever that is, without half a character in an answer or an entry', async () => {
  const { send, entryOf } = await assembledGateway(cleanUp, config)
  for (const before of ['', 'x'])
    for (const long of [`${before}${'😀'.repeat(300)}`, `${before}\ud83d`]) {
      const asked: [path: string, body: object][] = [
        ['/v1/chat/completions', { ...chat, model: long }],
        ['/v1/chat/completions', { ...chat, provider: { only: [long] } }],
        ['/v1/chat/completions', { ...chat, provider: { region: long } }],
        ['/v1/chat/completions', { ...chat, provider: { [long]: 1 } }],
        ['/v1/chat/completions', { ...chat, model: 'claude', [long]: 1 }],
        ['/v1/chat/completions', { ...chat, messages: [{ role: long, content: 'hi' }] }],
        ['/v1/chat/completions', { ...chat, [long]: { file_id: 'file_1' } }],
        ['/v1/responses', { model: 'chat', input: 'hi', previous_response_id: long }],
        ['/v1/messages', { ...chat, model: long, max_tokens: 5 }],
        ['/v1/videos', { model: 'video', prompt: 'a cat', [long]: 1 }],
      ]
      for (const [path, body] of asked) {
        const response = await send(path, body)
        const of = `${path} ${JSON.stringify(body).slice(0, 60)}`
        assert.doesNotMatch(await response.text(), HALF, of)
        const entry = await entryOf(response)
        assert.doesNotMatch(JSON.stringify(entry), HALF, of)
        if (entry.model !== null) assert.ok(entry.model.length <= 200)
      }
      for (const query of [
        `/v1/calls?${before}${'%F0%9F%98%80'.repeat(99)}=1`,
        `/v1/usage?group_by=x&${before}${'%F0%9F%98%80'.repeat(99)}=1`,
      ])
        assert.doesNotMatch(await (await send(query)).text(), HALF, query)
    }
})

it('a member of a megabyte is refused in few words, and the trace has the reason', async () => {
  const { send, entryOf } = await assembledGateway(cleanUp, config)
  const long = 'n'.repeat(1_000_000)
  for (const [path, body] of [
    ['/v1/chat/completions', { ...chat, model: 'claude', [long]: 1 }],
    ['/v1/messages', { ...chat, max_tokens: 5, [long]: 1 }],
    ['/v1/responses', { model: 'claude', input: 'hi', [long]: 1 }],
  ] as const) {
    const response = await send(path, body)
    assert.equal(response.status, 400)
    assert.ok((await response.text()).length < 1000)
    const { routing } = await entryOf(response)
    assert.match(routing?.eliminated[0]?.detail ?? '', /^n{200} has no counterpart$/)
  }
})

it('an error of an upstream with half a character has none in the answer and the entry', async () => {
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const lines = [{ ...line('a', 'openai', { chat: 'm' }), baseUrl: `${upstream.url}/v1` }]
  const { send, entryOf } = await assembledGateway(cleanUp, { models: [model('chat', 'chat')], lines })
  for (const half of ['\ud83d', '\udc00'])
    for (const body of [
      {
        error: { message: `Invalid value ${half} for the model`, type: `t${half}`, code: half, param: half },
      },
      { detail: [{ loc: ['body', half], msg: `${half} field required`, type: `value_error${half}` }] },
      { message: `${half} not found`, __type: `a#${half}` },
    ])
      for (const status of [400, 404, 429, 500]) {
        upstream.script = (res) => answerJson(res, status, body)
        const response = await send('/v1/chat/completions', chat)
        assert.doesNotMatch(await response.text(), HALF)
        assert.doesNotMatch(JSON.stringify(await entryOf(response)), HALF)
      }
})

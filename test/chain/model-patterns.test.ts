import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { CallLogEntry } from '../../lib/core/call/index.ts'
import { jsonOf } from '../support/answer-bodies.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { chatBody, messageBody } from '../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  messageAnswer,
  type ReceivedRequest,
  startUpstream,
} from '../support/scripted-upstream.ts'
import { untilAsync } from '../support/until.ts'

const CHAT = '/v1/chat/completions'
const ADMIN = 'admin-token-of-the-test'
const price = (amount: string) => ({ inputPerMillion: amount, outputPerMillion: amount })
const chat = { kind: 'chat', maxOutputTokens: 1000 }

describe('a gateway with model patterns', async () => {
  const cleanUp = cleaningUp()
  /** The models that each provider lists, and has. */
  const listed: Record<string, readonly string[]> = {
    openai: ['gpt-4o', 'gpt-4o-mini', 'whisper-1', 'gpt-exact', 'gpt-odd name', 'gpt-*'],
    anthropic: ['claude-a', 'claude-b'],
  }
  const openai = await startUpstream((res, { json, path }) => {
    if (path === '/v1/models')
      return answerJson(res, 200, { data: (listed.openai ?? []).map((id) => ({ id })) })
    if (!listed.openai?.includes(json.model))
      return answerJson(res, 404, { error: { code: 'model_not_found', message: 'no such model' } })
    chatAnswer(res, 'Hello')
  })
  const anthropic = await startUpstream((res, { path }) => {
    if (!path.startsWith('/v1/models')) return messageAnswer(res, 'Hello')
    const isSecond = path.includes('after_id=claude-a')
    const [id, last] = isSecond ? ['claude-b', null] : ['claude-a', 'claude-a']
    return answerJson(res, 200, { data: [{ type: 'model', id }], has_more: !isSecond, last_id: last })
  })
  const broken = await startUpstream((res) => answerJson(res, 500, {}))
  const hanging = await startUpstream(() => {})
  for (const upstream of [openai, anthropic, broken, hanging]) cleanUp.after(() => upstream.close())

  const line = (id: string, { url }: { url: string }, models: object, more: object = {}) => ({
    id,
    provider: id,
    protocol: 'openai',
    baseUrl: `${url}/v1`,
    apiKey: `sk-of-${id}`,
    models,
    endpoints: ['chat/completions'],
    ...more,
  })
  const gateway = await assembledGateway(
    cleanUp,
    {
      accounts: [
        { id: 'acme', balance: '100' },
        { id: 'other', balance: '100' },
      ],
      keys: [
        { id: 'key_acme', account: 'acme', secret: 'sk-test-1' },
        {
          id: 'key_other',
          account: 'other',
          secret: 'sk-other',
          allowModels: ['gpt-4o-*', 'vendor/claude-b'],
        },
      ],
      models: [
        { id: 'gpt-*', ...chat, price: price('1'), features: ['stream'], contextWindow: 20_000 },
        { id: 'gpt-4o-*', ...chat, price: price('3') },
        { id: 'gpt-exact', ...chat, price: price('7') },
        { id: 'vendor/*', ...chat, price: price('2') },
        { id: 'first', ...chat, fallbacks: ['gpt-4o'] },
        { id: 'lost/*', ...chat },
      ],
      lines: [
        line('openai', openai, { 'gpt-*': '*' }),
        line(
          'anthropic',
          anthropic,
          { 'vendor/*': '$1' },
          { protocol: 'anthropic', endpoints: ['messages'] },
        ),
        line('broken', broken, { first: 'x', 'lost/*': '$1' }, { circuit: { minimumCalls: 1000 } }),
        line('hanging', hanging, { 'lost/*': 'hung-*' }, { enabled: true }),
      ],
    },
    { adminToken: ADMIN },
  )
  beforeEach(() => {
    for (const { requests } of [openai, anthropic, broken]) requests.length = 0
  })

  const calls = (requests: readonly ReceivedRequest[]): ReceivedRequest[] =>
    requests.filter(({ path }) => !path.startsWith('/v1/models'))
  const send = (path: string, body?: unknown, key = 'sk-test-1') =>
    gateway.send(path, body, { headers: { authorization: `Bearer ${key}` } })
  const idsFor = async (key: string): Promise<string[]> => {
    const { data } = (await jsonOf(await send('/v1/models', undefined, key))) as { data: { id: string }[] }
    return data.map(({ id }) => id)
  }
  const entryOf = async (response: Response): Promise<CallLogEntry> => gateway.entryOf(response)

  it('lists the models of the providers that the key may use', async () => {
    assert.deepEqual(await idsFor('sk-test-1'), [
      'gpt-exact',
      'first',
      'gpt-4o',
      'gpt-4o-mini',
      'vendor/claude-a',
      'vendor/claude-b',
    ])
    assert.deepEqual(await idsFor('sk-other'), ['gpt-4o-mini', 'vendor/claude-b'])
    const warned = gateway.logged.filter(
      ({ message }) => message === 'the models of a line could not be listed',
    )
    // On a busy machine the time of a line that hangs may have run out already.
    assert.deepEqual(
      warned
        .map(({ level, fields }) => [level, (fields as { line: string }).line])
        .filter(([, line]) => line !== 'hanging'),
      [['warn', 'broken']],
    )
  })

  it('warns at the start of models without a price that prepaid accounts may use', () => {
    const warned = gateway.logged.filter(({ message }) => message.startsWith('models without a price'))
    assert.deepEqual(
      warned.map(({ level, fields }) => [level, fields]),
      [['warn', { count: 2, models: ['first', 'lost/*'] }]],
    )
  })

  it('asks each provider once, with the credentials of the line', async () => {
    await idsFor('sk-test-1')
    await idsFor('sk-other')
    assert.deepEqual([openai.requests, anthropic.requests, broken.requests].flat(), [])
    // On a busy machine the time of the line that hangs may have run out already, and it is asked again.
    const asked = new Set(hanging.requests.map(({ headers }) => headers.authorization))
    assert.deepEqual([...asked], ['Bearer sk-of-hanging'])
  })

  it('sends a name to the lines of its pattern, and charges the most specific one', async () => {
    const CASES = [
      ['gpt-4o', '0.000007'],
      ['gpt-4o-mini', '0.000021'],
      ['gpt-exact', '0.000049'],
    ] as const
    for (const [name, charged] of CASES) {
      const response = await send(CHAT, chatBody({ model: name }))
      assert.equal(response.status, 200)
      const { model, billing, routing } = await entryOf(response)
      assert.deepEqual(
        [model, routing?.attempts.map(({ upstream_model: upstream }) => upstream)],
        [name, [name]],
      )
      const inOut = (await jsonOf(
        await send(`/v1/calls/${response.headers.get('x-request-id')}`),
      )) as CallLogEntry
      assert.equal(inOut.model, name)
      const { input_tokens: input = 0, output_tokens: output = 0 } = inOut.usage ?? {}
      const rate = Number(charged) / 0.000007
      assert.equal(Number(billing?.charged), ((input + output) * rate) / 1e6)
    }
    assert.deepEqual(
      calls(openai.requests).map(({ json }) => json.model),
      CASES.map(([name]) => name),
    )
  })

  it('removes the prefix from a name, in a translation as well', async () => {
    const plain = await send('/v1/messages', messageBody({ model: 'vendor/claude-a' }))
    assert.equal(plain.status, 200)
    const translated = await send(CHAT, chatBody({ model: 'vendor/claude-b' }))
    assert.equal(translated.status, 200)
    assert.deepEqual(
      calls(anthropic.requests).map(({ json }) => json.model),
      ['claude-a', 'claude-b'],
    )
  })

  it('applies the limits and features of the pattern', async () => {
    const response = await send(
      CHAT,
      chatBody({ model: 'gpt-4o', tools: [{ type: 'function', function: { name: 'f' } }] }),
    )
    assert.equal(response.status, 400)
    const long = await send(
      CHAT,
      chatBody({ model: 'gpt-4o', messages: [{ role: 'user', content: 'word '.repeat(30_000) }] }),
    )
    assert.equal(long.status, 400)
    assert.equal(((await jsonOf(long)) as { error: { code: string } }).error.code, 'context_too_long')
    assert.equal(calls(openai.requests).length, 0)
  })

  it('neither serves a pattern as a model, nor accepts a name that no pattern matches', async () => {
    for (const name of ['gpt-*', 'other', 'vendor', 'gpt-4o\u0000', `gpt-${'x'.repeat(300)}`]) {
      const response = await send(CHAT, chatBody({ model: name }))
      assert.equal(response.status, 404, name)
    }
    for (const name of ['vendor/..', 'vendor/']) {
      const response = await send(CHAT, chatBody({ model: name }))
      assert.notEqual(response.status, 200, name)
    }
    assert.deepEqual([calls(openai.requests), calls(anthropic.requests)].flat(), [])
  })

  it('refuses a name that the key may not use', async () => {
    const response = await send(CHAT, chatBody({ model: 'gpt-4o' }), 'sk-other')
    assert.equal(response.status, 403)
    assert.equal((await send('/v1/models/gpt-4o', undefined, 'sk-other')).status, 404)
    assert.equal((await send(CHAT, chatBody({ model: 'gpt-4o-mini' }), 'sk-other')).status, 200)
    assert.deepEqual(
      calls(openai.requests).map(({ json }) => json.model),
      ['gpt-4o-mini'],
    )
  })

  it('uses a pattern as a fallback', async () => {
    const response = await send(CHAT, chatBody({ model: 'first' }))
    assert.equal(response.status, 200)
    const { model, routing } = await entryOf(response)
    assert.equal(model, 'gpt-4o')
    assert.deepEqual(
      routing?.attempts.map(({ line, model }) => [line, model]),
      [
        ['broken', 'first'],
        ['openai', 'gpt-4o'],
      ],
    )
    const named = await send(
      CHAT,
      chatBody({ model: 'first', models: ['first', 'gpt-4o-mini', 'gpt-4o-mini'] }),
    )
    assert.equal(named.status, 200)
    assert.equal((await entryOf(named)).model, 'gpt-4o-mini')
  })

  it('returns a name and its lines', async () => {
    const shown = (await jsonOf(await send('/v1/models/vendor/claude-b'))) as { id: string; kind: string }
    assert.deepEqual([shown.id, shown.kind], ['vendor/claude-b', 'chat'])
    const routing = (await jsonOf(await send('/v1/models/gpt-4o/routing'))) as {
      model: string
      candidates: { id: string }[]
    }
    assert.deepEqual([routing.model, routing.candidates.map(({ id }) => id)], ['gpt-4o', ['openai']])
    assert.equal((await send('/v1/models/gpt-*')).status, 404)
  })

  it('names the model in reports', async () => {
    await untilAsync(async () => {
      const answer = await send('/v1/usage?group_by=model')
      const { data } = (await jsonOf(answer)) as { data: { model: string }[] }
      const names = data.map(({ model }) => model)
      return ['gpt-4o', 'gpt-4o-mini', 'vendor/claude-a'].every((name) => names.includes(name))
    })
  })

  it('does not put names that callers invent into metrics', async () => {
    const made = Array.from({ length: 20 }, (_, i) => send(CHAT, chatBody({ model: `gpt-made-up-${i}` })))
    for (const answer of await Promise.all(made)) await answer.text()
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    assert.doesNotMatch(metrics, /gpt-made-up/)
    const response = await send(CHAT, chatBody({ model: 'gpt-4o-mini' }), 'sk-other')
    assert.equal(response.status, 200, 'another account, and another name, do not notice')
  })
})

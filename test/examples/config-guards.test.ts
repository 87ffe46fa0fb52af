import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { KEY } from '../support/gateway.ts'
import { answerJson, chatAnswer, startUpstream, type UpstreamScript } from '../support/scripted-upstream.ts'

const OTHER = 'sk-of-globex'

/** A gateway with guards in its config, and two tenants. */
async function gatewayWith(
  t: { after(run: () => unknown): void },
  guards: readonly object[],
  script: UpstreamScript = (res) => chatAnswer(res),
) {
  const upstream = await startUpstream(script)
  t.after(() => upstream.close())
  const config = {
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_globex', account: 'globex', secret: OTHER },
    ],
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [
      {
        id: 'l',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream.url}/v1`,
        apiKey: 'sk-upstream',
        models: { chat: 'u' },
      },
    ],
    guards,
  }
  const gateway = await assembledGateway(t, config)
  const ask = (content: string, key = KEY): Promise<Response> =>
    gateway.send(
      '/v1/chat/completions',
      { model: 'chat', messages: [{ role: 'user', content }] },
      { headers: { authorization: `Bearer ${key}` } },
    )
  return { ...gateway, ask, upstream, config }
}

describe('the guards of a config', () => {
  it('check the calls of their keys only, and follow a reload', async (t) => {
    const guard = { name: 'house', keys: ['key_acme'], patterns: { refuse: ['nightingale'] } }
    const { ask, gateway, config } = await gatewayWith(t, [guard])
    assert.equal((await ask('about nightingale')).status, 400)
    assert.equal((await ask('about nightingale', OTHER)).status, 200)
    await gateway.reload({ ...config, guards: [{ ...guard, keys: ['key_globex'] }] })
    assert.equal((await ask('about nightingale')).status, 200)
    assert.equal((await ask('about nightingale', OTHER)).status, 400)
  })

  it('ask the moderation of a line with its key, and refuse what it flags', async (t) => {
    const { ask, upstream, entryOf } = await gatewayWith(
      t,
      [{ name: 'moderated', moderation: { line: 'l', model: 'omni' } }],
      (res, { path, json }) => {
        if (!path.endsWith('/moderations')) return chatAnswer(res)
        const flagged = String(json.input).includes('fight')
        answerJson(res, 200, { results: [{ flagged, categories: { violence: flagged, hate: false } }] })
      },
    )
    const passed = await ask('hello')
    assert.equal(passed.status, 200)
    await passed.arrayBuffer()
    const refused = await ask('a fight')
    assert.equal(refused.status, 400)
    const { error } = (await refused.json()) as { error: { message: string } }
    assert.match(error.message, /violence/)
    const asked = upstream.requests.filter(({ path }) => path === '/v1/moderations')
    assert.deepEqual(
      asked.map(({ json, headers }) => [json.input, json.model, headers.authorization]),
      [
        ['hello', 'omni', 'Bearer sk-upstream'],
        ['Hello', 'omni', 'Bearer sk-upstream'],
        ['a fight', 'omni', 'Bearer sk-upstream'],
      ],
    )
    assert.deepEqual(
      (await entryOf(passed)).guards?.map(({ on, decision }) => [on, decision]),
      [
        ['input', 'allowed'],
        ['output', 'allowed'],
      ],
    )
  })

  it('refuse by onError while the moderation is away', async (t) => {
    const script: UpstreamScript = (res, { path }) =>
      path.endsWith('/moderations') ? answerJson(res, 500, {}) : chatAnswer(res)
    const moderation = { line: 'l' }
    const strict = await gatewayWith(t, [{ name: 'm', moderation }], script)
    const refused = await strict.ask('hello')
    assert.equal(refused.status, 400)
    assert.equal((await strict.entryOf(refused)).guards?.[0]?.decision, 'failed')
    const lenient = await gatewayWith(t, [{ name: 'm', moderation, onError: 'allow' }], script)
    assert.equal((await lenient.ask('hello')).status, 200)
  })

  it('refuse by onError what the moderation does not decide', async (t) => {
    for (const results of [[], [{}], [null], {}, undefined]) {
      const { ask, upstream } = await gatewayWith(
        t,
        [{ name: 'm', moderation: { line: 'l' } }],
        (res, { path }) =>
          path.endsWith('/moderations') ? answerJson(res, 200, { results }) : chatAnswer(res),
      )
      assert.equal((await ask('hello')).status, 400, JSON.stringify(results))
      assert.deepEqual(
        upstream.requests.map(({ path }) => path),
        ['/v1/moderations'],
      )
    }
  })

  it('name their faults', async (t) => {
    const faults: readonly [guard: object, fault: RegExp][] = [
      [{ name: 'a' }, /guards\[0\]: needs either "patterns" or "moderation"/],
      [
        { name: 'a', patterns: { refuse: ['('] } },
        /guards\[0\]\.patterns\.refuse\[0\]: must be a regular expression/,
      ],
      [{ name: 'a', patterns: {} }, /needs "refuse" or "mask"/],
      [{ name: 'a', moderation: { line: 'none' } }, /guards\[0\]\.moderation\.line: there is no line "none"/],
    ]
    for (const [guard, fault] of faults) await assert.rejects(gatewayWith(t, [guard]), fault)
  })
})

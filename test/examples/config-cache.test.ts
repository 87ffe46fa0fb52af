import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AssembledOptions, assembledGateway } from '../support/assembled-gateway.ts'
import { KEY } from '../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatAnswerOf,
  chatChunk,
  chatEvents,
  messageAnswer,
  messageEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../support/scripted-upstream.ts'
import { until, untilAsync } from '../support/until.ts'

const OTHER_KEY = 'sk-of-acme-too'
const GLOBEX_KEY = 'sk-of-globex'
const ADMIN = 'admin-token-of-the-tests'
const CHAT = '/v1/chat/completions'

interface Setting extends AssembledOptions {
  readonly cache?: object
  readonly more?: object
  readonly line?: object
  readonly script?: UpstreamScript
}

/** A gateway whose model `chat` has a cache, with two tenants, over an upstream. */
async function cachingGateway(
  t: { after(run: () => unknown): void },
  {
    cache = { ttlSeconds: 60 },
    more = {},
    line = {},
    script = (res) => chatAnswer(res),
    ...options
  }: Setting = {},
) {
  const upstream = await startUpstream(script)
  t.after(() => upstream.close())
  const config = {
    accounts: [
      { id: 'acme', balance: '10' },
      { id: 'globex', balance: '10' },
    ],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_acme_too', account: 'acme', secret: OTHER_KEY },
      { id: 'key_globex', account: 'globex', secret: GLOBEX_KEY },
    ],
    models: [
      { id: 'chat', kind: 'chat', price: { perRequest: '1' }, cache },
      { id: 'uncached', kind: 'chat' },
    ],
    lines: [
      {
        id: 'l',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream.url}/v1`,
        models: { chat: 'u', uncached: 'v' },
        ...line,
      },
    ],
    ...more,
  }
  const gateway = await assembledGateway(t, config, { adminToken: ADMIN, ...options })
  const ask = (extra: object = {}, headers: Record<string, string> = {}, path = CHAT): Promise<Response> =>
    gateway.send(path, { model: 'chat', messages: [{ role: 'user', content: 'hi' }], ...extra }, { headers })
  const admin = async <T>(path: string, body?: object, method = 'GET'): Promise<T> => {
    const response = await gateway.send(path, body, { method, headers: { authorization: `Bearer ${ADMIN}` } })
    return (await response.json()) as T
  }
  const balanceOf = async (account: string) =>
    (await admin<{ balance: string }>(`/admin/accounts/${account}`)).balance
  return { ...gateway, ask, upstream, config, admin, balanceOf }
}

const as = (key: string) => ({ authorization: `Bearer ${key}` })
const outcomeOf = (response: Response) => response.headers.get('x-gateway-cache')

describe('the cache of a model', () => {
  it('answers a repetition without the line, free of charge, and says whose answer it is', async (t) => {
    const { ask, upstream, entryOf, balanceOf, send } = await cachingGateway(t)
    const first = await ask()
    const firstBody = await first.text()
    const again = await ask({ messages: [{ content: 'hi', role: 'user' }] })
    assert.deepEqual([outcomeOf(first), outcomeOf(again)], ['miss', 'hit'])
    assert.equal(await again.text(), firstBody)
    assert.equal(upstream.requests.length, 1)
    const [one, two] = [await entryOf(first), await entryOf(again)]
    assert.notEqual(one.id, two.id)
    assert.deepEqual([one.cache, one.cached_from], ['miss', undefined])
    assert.deepEqual([two.cache, two.cached_from], ['hit', one.id])
    assert.deepEqual(
      [two.outcome, two.status, two.routing, two.usage, two.billing],
      ['completed', 200, null, null, null],
    )
    assert.equal(await balanceOf('acme'), '9')
    // Both requests, and the tokens of the first.
    const usage = (await (await send('/v1/usage?group_by=model')).json()) as { data: object[] }
    const [{ p50_ms: _, p95_ms: __, ...row }] = usage.data as [Record<string, unknown>]
    assert.deepEqual(row, {
      ...{ model: 'chat', requests: 2, refused: 0, failed: 0 },
      ...{ input_tokens: 7, cached_input_tokens: 0, output_tokens: 3, images: 0, seconds: 0, charged: '1' },
    })
  })

  it('is shared by the keys of an account, and with no other account', async (t) => {
    const { ask, upstream } = await cachingGateway(t)
    await ask()
    assert.equal(outcomeOf(await ask({}, as(GLOBEX_KEY))), 'miss')
    assert.equal(outcomeOf(await ask({}, as(OTHER_KEY))), 'hit')
    assert.equal(outcomeOf(await ask({}, as(GLOBEX_KEY))), 'hit')
    assert.equal(upstream.requests.length, 2)
  })

  const WORDS = ['Hel', 'lo ', 'you']
  const MESSAGES = { max_tokens: 9 }
  const RESPONSES = { messages: undefined, input: 'hi', store: false }
  for (const [path, protocol, extra] of [
    [CHAT, 'openai', {}],
    [CHAT, 'anthropic', MESSAGES],
    ['/v1/messages', 'anthropic', MESSAGES],
    ['/v1/messages', 'openai', MESSAGES],
    ['/v1/responses', 'openai', RESPONSES],
  ] as const)
    it(`gives streams of ${path} on ${protocol} lines again as they were`, async (t) => {
      const { ask, upstream, entryOf } = await cachingGateway(t, {
        line: { protocol, ...(protocol === 'openai' && { endpoints: ['chat/completions'] }) },
        script: (res) => stream(res, protocol === 'openai' ? chatEvents(WORDS) : messageEvents(WORDS)),
      })
      const streamed = { ...extra, stream: true }
      const first = await ask(streamed, {}, path)
      const text = await first.text()
      const again = await ask(streamed, {}, path)
      assert.equal(first.status, 200, text)
      assert.deepEqual([outcomeOf(first), outcomeOf(again)], ['miss', 'hit'])
      assert.equal(await again.text(), text)
      assert.match(text, /Hel/)
      assert.equal(again.headers.get('content-type'), first.headers.get('content-type'))
      assert.equal((await entryOf(again)).stream, true)
      // A plain answer is another one.
      const plain = await ask(extra, {}, path)
      assert.deepEqual([plain.status, outcomeOf(plain)], [200, 'miss'])
      await plain.arrayBuffer()
      assert.equal(upstream.requests.length, 2)
    })

  it('charges its price once for each request, and refuses a caller that cannot pay it', async (t) => {
    const { ask, upstream, entryOf, balanceOf, admin } = await cachingGateway(t, {
      cache: { ttlSeconds: 60, hitPrice: '4' },
    })
    await ask()
    const paid = [await ask(), await ask()]
    assert.deepEqual(paid.map(outcomeOf), ['hit', 'hit'])
    assert.equal(await balanceOf('acme'), '1')
    const entry = await entryOf(paid[0] as Response)
    assert.deepEqual([entry.billing?.charged, entry.cache], ['4', 'hit'])
    const refused = await ask()
    assert.deepEqual([refused.status, outcomeOf(refused)], [402, null])
    assert.doesNotMatch(await refused.text(), /Hello/)
    assert.equal(await balanceOf('acme'), '1')
    assert.equal(upstream.requests.length, 1)
    const { violations } = await admin<{ violations: unknown[] }>('/admin/ledger/check')
    assert.deepEqual(violations, [])
  })

  it('gives an answer that costs nothing to an account without money, however long the prompt is', async (t) => {
    const { ask, upstream } = await cachingGateway(t, {
      line: { models: { chat: 'u' } },
      more: {
        accounts: [{ id: 'acme', balance: '1' }],
        keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
        models: [{ id: 'chat', kind: 'chat', price: { perRequest: '1' }, cache: { ttlSeconds: 60 } }],
      },
    })
    const long = { messages: [{ role: 'user', content: 'x'.repeat(40_000) }] }
    await (await ask(long)).text()
    // The gateway knows from now on that nothing is left.
    const another = await ask()
    assert.deepEqual([another.status, outcomeOf(another)], [402, 'miss'])
    const again = await ask(long)
    assert.deepEqual([again.status, outcomeOf(again)], [200, 'hit'])
    assert.equal(upstream.requests.length, 1)
  })

  it('counts a hit as a request, and takes no slot', async (t) => {
    const gate = Promise.withResolvers<void>()
    const { ask, upstream, entryOf } = await cachingGateway(t, {
      more: {
        accounts: [{ id: 'acme', limits: { rpm: 4, concurrency: 1 } }],
        keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
      },
      script: async (res, { json }) => {
        if (json.temperature === 0) await gate.promise
        chatAnswer(res)
      },
    })
    const first = await ask()
    await first.arrayBuffer()
    const running = ask({ temperature: 0 })
    await until(() => upstream.requests.length === 2, 'a call runs')
    const hit = await ask()
    assert.deepEqual([outcomeOf(hit), hit.headers.get('x-ratelimit-remaining-requests')], ['hit', '1'])
    gate.resolve()
    await (await running).arrayBuffer()
    assert.equal(outcomeOf(await ask()), 'hit')
    const limited = await ask()
    assert.deepEqual([limited.status, outcomeOf(limited)], [429, null])
    assert.doesNotMatch(await limited.text(), /Hello/)
    const { cache, cached_from, limit, billing } = await entryOf(limited)
    assert.deepEqual(
      [cache, cached_from, limit?.kind, billing],
      ['hit', first.headers.get('x-request-id'), 'rpm', null],
    )
  })

  it('keeps no answer that is not whole, or not what was asked for', async (t) => {
    const endings: Record<string, UpstreamScript> = {
      failed: (res) => answerJson(res, 400, { error: { message: 'no' } }),
      cut: (res) => {
        const { choices } = JSON.parse(chatAnswerOf('Hello')) as { choices: object[] }
        chatAnswer(res, 'Hello', { choices: choices.map((each) => ({ ...each, finish_reason: 'length' })) })
      },
      filtered: (res) => {
        const { choices } = JSON.parse(chatAnswerOf('Hello')) as { choices: object[] }
        chatAnswer(res, 'Hello', {
          choices: choices.map((each) => ({ ...each, finish_reason: 'content_filter' })),
        })
      },
      'broken off': (res, { json }) => {
        if (!json.stream) return chatAnswer(res)
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(chatChunk({ content: 'Hello' }))
        setTimeout(() => res.destroy(), 20)
        return
      },
    }
    for (const [name, script] of Object.entries(endings)) {
      const { ask, upstream } = await cachingGateway(t, { script })
      const body = { stream: name === 'broken off' }
      for (let i = 0; i < 2; i++) {
        const response = await ask(body)
        assert.notEqual(outcomeOf(response), 'hit', name)
        await response.text().catch(() => {})
      }
      assert.equal(upstream.requests.length, 2, name)
    }
  })

  it('keeps nothing of a stream whose caller leaves', async (t) => {
    const { ask, entryOf } = await cachingGateway(t, {
      more: { routing: { onDisconnect: 'drain', drainMs: 5000 } },
      script: (res) => stream(res, chatEvents(['a', 'b', 'c', 'd']), { paceMs: 40 }),
    })
    const first = await ask({ stream: true })
    const reader = first.body?.getReader()
    await reader?.read()
    await reader?.cancel()
    assert.equal((await entryOf(first)).outcome, 'interrupted')
    const again = await ask({ stream: true })
    assert.equal(outcomeOf(again), 'miss')
    assert.match(await again.text(), /\[DONE\]/)
  })

  it('keeps no answer of a fallback model', async (t) => {
    let isDown = true
    const { ask, config, gateway } = await cachingGateway(t, {
      script: (res, { json }) =>
        json.model === 'u' && isDown ? answerJson(res, 503, {}) : chatAnswer(res, String(json.model)),
    })
    const [chat, other] = config.models
    await gateway.reload({ ...config, models: [{ ...chat, fallbacks: ['uncached'] }, other] } as never)
    assert.match(await (await ask()).text(), /"v"/)
    isDown = false
    const again = await ask()
    assert.equal(outcomeOf(again), 'miss')
  })

  it('passes by what has an effect, or names what is kept', async (t) => {
    const { ask, upstream, gateway, config } = await cachingGateway(t, {
      script: (res, { path, json }) =>
        path.endsWith('/responses')
          ? answerJson(res, 200, {
              id: `resp_${upstreamCalls()}`,
              object: 'response',
              status: 'completed',
              model: 'u',
              output: [
                {
                  type: 'message',
                  id: 'msg_1',
                  role: 'assistant',
                  status: 'completed',
                  content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
                },
              ],
              usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
            })
          : chatAnswer(res, String(json.model)),
    })
    let calls = 0
    function upstreamCalls(): number {
      return ++calls
    }
    const input = { messages: undefined, input: 'hi' }
    const passed: readonly [name: string, body: object, headers?: Record<string, string>, path?: string][] = [
      ['an Idempotency-Key', {}, { 'idempotency-key': 'one' }],
      ['no-store', {}, { 'cache-control': 'no-store' }],
      ['a model without a cache', { model: 'uncached' }],
      ['a stored completion', { store: true }],
      ['tools that search', { web_search_options: {} }],
      ['plugins that search', { plugins: [{ id: 'web' }] }],
      ['a stored response', input, {}, '/v1/responses'],
      ['tools of a server', { ...input, store: false, tools: [{ type: 'web_search' }] }, {}, '/v1/responses'],
    ]
    for (const [name, body, headers, path] of passed) {
      const response = await ask(body, headers, path)
      assert.deepEqual(
        [response.status, outcomeOf(response)],
        [200, null],
        `${name}: ${await response.text()}`,
      )
    }
    const before = upstream.requests.length
    const own = { ...input, store: false, tools: [{ type: 'function', name: 'f', parameters: {} }] }
    await (await ask(own, {}, '/v1/responses')).text()
    assert.equal(outcomeOf(await ask(own, {}, '/v1/responses')), 'hit')
    assert.equal(upstream.requests.length, before + 1)
    // Without `cache`, a model's answers are neither read nor kept.
    await gateway.reload({
      ...config,
      models: config.models.map(({ id, kind }) => ({ id, kind })),
    } as never)
    assert.equal(outcomeOf(await ask(own, {}, '/v1/responses')), null)
  })

  it('keeps apart what the line is chosen by, and the form of the protocol', async (t) => {
    const { ask, upstream } = await cachingGateway(t)
    await ask()
    const chosen = { 'x-gateway-provider': JSON.stringify({ only: ['p'] }) }
    assert.equal(outcomeOf(await ask({}, chosen)), 'miss')
    assert.equal(outcomeOf(await ask({}, chosen)), 'hit')
    assert.equal(outcomeOf(await ask({ max_tokens: 5 })), 'miss')
    assert.equal(outcomeOf(await ask({ max_tokens: 5 }, {}, '/v1/messages')), 'miss')
    assert.equal(outcomeOf(await ask({ max_tokens: 5 }, { 'anthropic-beta': 'b' }, '/v1/messages')), 'miss')
    assert.equal(upstream.requests.length, 5)
  })

  it('checks a hit by the guards of its key', async (t) => {
    const guards = [{ name: 'house', keys: ['key_acme_too'], patterns: { refuse: ['Hello'] }, input: false }]
    const { ask, gateway, config } = await cachingGateway(t, { more: { guards } })
    for (const streamed of [false, true]) {
      await (await ask({ stream: streamed })).text()
      assert.equal(outcomeOf(await ask({ stream: streamed })), 'hit')
      const guarded = await ask({ stream: streamed }, as(OTHER_KEY))
      assert.equal(guarded.status, 400)
      assert.doesNotMatch(await guarded.text(), /"content":"Hello/)
    }
    // The patterns of a guard that has checked the answer may have changed meanwhile.
    const every = { name: 'house', patterns: { refuse: ['bye'] }, input: false }
    await gateway.reload({ ...config, guards: [every] } as never)
    await (await ask()).text()
    assert.equal(outcomeOf(await ask()), 'hit')
    await gateway.reload({ ...config, guards: [{ ...every, patterns: { refuse: ['Hello'] } }] } as never)
    const refused = await ask()
    assert.equal(refused.status, 400)
    assert.doesNotMatch(await refused.text(), /"content":"Hello/)
  })

  it('answers no key that is disabled, and no account that is suspended', async (t) => {
    const { ask, admin } = await cachingGateway(t)
    await (await ask()).text()
    await admin('/admin/accounts/acme', { status: 'suspended' }, 'PATCH')
    // Keys are remembered for a few seconds.
    await untilAsync(async () => (await ask()).status === 403, 'the account is suspended')
  })

  it('runs a message again whose provider calls servers of tools', async (t) => {
    const { ask, upstream } = await cachingGateway(t, {
      line: { protocol: 'anthropic' },
      script: (res) => messageAnswer(res),
    })
    const servers = { mcp_servers: [{ type: 'url', name: 'shop', url: 'https://shop.example/mcp' }] }
    for (const sent of [1, 2]) {
      const response = await ask({ max_tokens: 5, ...servers }, {}, '/v1/messages')
      assert.deepEqual([response.status, outcomeOf(response)], [200, null], await response.text())
      assert.equal(upstream.requests.length, sent)
    }
  })

  it('answers no account from a region that it no longer allows', async (t) => {
    const { ask, admin, upstream } = await cachingGateway(t, { line: { region: 'us' } })
    assert.equal(outcomeOf(await ask()), 'miss')
    assert.equal(outcomeOf(await ask()), 'hit')
    await admin('/admin/accounts/acme', { line_regions: ['eu'] }, 'PATCH')
    // Keys are remembered for a few seconds.
    await untilAsync(async () => (await ask()).status === 403, 'the region is refused')
    assert.equal(upstream.requests.length, 1)
  })

  it('answers nobody without a member, unless the request allows that', async (t) => {
    const { ask, upstream } = await cachingGateway(t, {
      line: { protocol: 'anthropic' },
      script: (res) => messageAnswer(res),
    })
    const extra = { max_tokens: 5, n: 1, logprobs: true }
    const dropped = await ask(extra, { 'x-gateway-unsupported': 'drop' })
    assert.deepEqual([dropped.status, outcomeOf(dropped)], [200, 'miss'])
    const refused = await ask(extra, { 'x-gateway-unsupported': 'refuse' })
    const { error } = (await refused.json()) as { error: { code: string } }
    assert.deepEqual([refused.status, error.code], [400, 'unsupported_feature'])
    assert.equal(upstream.requests.length, 1)
  })

  it('names its faults', async (t) => {
    for (const [models, fault] of [
      [[{ id: 'chat', kind: 'chat', cache: {} }], /models\[0\]\.cache\.ttlSeconds/],
      [[{ id: 'chat', kind: 'chat', cache: { ttlSeconds: 0 } }], /models\[0\]\.cache\.ttlSeconds/],
      [
        [{ id: 'chat', kind: 'chat', cache: { ttlSeconds: 1, hitPrice: '-1' } }],
        /models\[0\]\.cache\.hitPrice: must not be negative/,
      ],
      [
        [{ id: 'chat', kind: 'image', cache: { ttlSeconds: 1 } }],
        /models\[0\]\.cache: a model of the kind "image" cannot have one/,
      ],
    ] as const)
      await assert.rejects(cachingGateway(t, { more: { models }, line: { models: { chat: 'u' } } }), fault)
  })
})

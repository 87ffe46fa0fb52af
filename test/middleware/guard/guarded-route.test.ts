import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import { callOf, guard } from '../../../lib/index.ts'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { type GuardFunction, patterns } from '../../../lib/middleware/guard/index.ts'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageEvents,
  startUpstream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const CARD = '4111 1111 1111 1111'
const maskCards = patterns({ mask: [/\d{4}(?: \d{4}){3}/] })
const refuseSecrets: GuardFunction = (text) =>
  text.includes('secret') ? { refuse: 'it has a secret' } : 'allow'

interface Guarded {
  readonly send: Awaited<ReturnType<typeof assembledGateway>>['send']
  readonly entryOf: (response: Response) => Promise<CallLogEntry>
  readonly upstream: Awaited<ReturnType<typeof startUpstream>>
}

/** A gateway with guards behind `readRequest`, over an upstream. */
async function guarded(
  t: { after(run: () => unknown): void },
  guards: readonly RequestHandler[],
  script: UpstreamScript,
  protocol: 'openai' | 'anthropic' = 'openai',
): Promise<Guarded> {
  const upstream = await startUpstream(script)
  t.after(() => upstream.close())
  const { send, entryOf } = await assembledGateway(
    t,
    {
      accounts: [{ id: 'acme', balance: '100' }],
      models: [
        {
          id: 'chat',
          kind: 'chat',
          price: { perRequest: '1', outputPerMillion: '1000000' },
          maxOutputTokens: 20,
        },
      ],
      lines: [
        {
          id: 'l',
          provider: 'p',
          protocol,
          baseUrl: `${upstream.url}/v1`,
          models: { chat: 'u' },
          // Responses are translated.
          ...(protocol === 'openai' && { endpoints: ['chat/completions'] }),
        },
      ],
    },
    { use: { read: guards } },
  )
  return { send, entryOf, upstream }
}

const events =
  (all: readonly string[]): UpstreamScript =>
  (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const each of all) res.write(each)
    res.end()
  }

const chat = (content: string, extra: object = {}) => ({
  model: 'chat',
  messages: [{ role: 'user', content }],
  ...extra,
})

/** Reads what there is of a body, whether it ends or breaks off. */
async function textOf(response: Response): Promise<{ text: string; isWhole: boolean }> {
  let text = ''
  const decoder = new TextDecoder()
  try {
    for await (const chunk of response.body as ReadableStream<Uint8Array>) text += decoder.decode(chunk)
    return { text, isWhole: true }
  } catch {
    return { text, isWhole: false }
  }
}

describe('guard before route', () => {
  it('refuses a request before anything is held, with the decision in the entry', async (t) => {
    const { send, entryOf, upstream } = await guarded(
      t,
      [guard({ name: 'secrets', input: (text) => refuseSecrets(text, undefined as never) })],
      (res) => chatAnswer(res),
    )
    const response = await send('/v1/chat/completions', chat('a secret'))
    assert.equal(response.status, 400)
    const entry = await entryOf(response)
    assert.deepEqual([entry.error_code, entry.outcome, entry.billing], ['content_filtered', 'refused', null])
    assert.deepEqual(
      entry.guards?.map(({ duration_ms: _, ...guard }) => guard),
      [{ guard: 'secrets', on: 'input', decision: 'refused', checks: 1 }],
    )
    assert.equal(upstream.requests.length, 0)
  })

  it('sends a masked request on masked, in each protocol', async (t) => {
    const { send, upstream } = await guarded(t, [guard({ input: maskCards })], (res) => chatAnswer(res))
    const bodies: readonly [path: string, body: object][] = [
      ['/v1/chat/completions', chat(`card ${CARD}`)],
      ['/v1/messages', { ...chat(`card ${CARD}`), max_tokens: 9 }],
      ['/v1/responses', { model: 'chat', input: `card ${CARD}` }],
    ]
    for (const [path, body] of bodies) {
      const response = await send(path, body)
      assert.equal(response.status, 200, path)
      await response.arrayBuffer()
    }
    assert.equal(upstream.requests.length, 3)
    for (const { raw } of upstream.requests) {
      assert.match(raw.toString(), /card \[removed\]/)
      assert.doesNotMatch(raw.toString(), /1111/)
    }
  })

  it('checks schemas of tools and answers, with the names in them', async (t) => {
    const { send, upstream } = await guarded(
      t,
      [guard({ input: (text) => refuseSecrets(text, undefined as never) })],
      (res) => chatAnswer(res),
    )
    for (const schema of [
      { properties: { 'a secret': { type: 'string' } } },
      { properties: { a: { type: 'string', format: 'a secret' } } },
      { $schema: 'a secret' },
    ]) {
      const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', ...schema } } }
      const format = {
        type: 'json_schema',
        json_schema: { name: 's', schema: { type: 'object', ...schema } },
      }
      for (const members of [{ tools: [tool] }, { response_format: format }]) {
        const response = await send('/v1/chat/completions', { ...chat('hello'), ...members })
        await response.arrayBuffer()
        assert.equal(response.status, 400, JSON.stringify(members))
      }
    }
    assert.equal(upstream.requests.length, 0)
  })

  it('charges an answer that it refuses, and says so in the entry', async (t) => {
    const { send, entryOf } = await guarded(t, [guard({ name: 'out', output: refuseSecrets })], (res) =>
      chatAnswer(res, 'here is the secret'),
    )
    const response = await send('/v1/chat/completions', chat('hi'))
    assert.equal(response.status, 400)
    assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'content_filtered')
    const entry = await entryOf(response)
    assert.deepEqual([entry.status, entry.error_code, entry.outcome], [400, 'content_filtered', 'failed'])
    // One for the request, and three tokens of output.
    assert.equal(entry.billing?.charged, '4')
    assert.doesNotMatch(JSON.stringify(entry), /here is the secret/)
  })

  it('lets an error pass to a caller with an Idempotency-Key, and nothing is charged', async (t) => {
    const { send, entryOf, upstream } = await guarded(t, [guard({ output: refuseSecrets })], (res) =>
      answerJson(res, 500, { error: { message: 'broken' } }),
    )
    const headers = { 'idempotency-key': 'one' }
    for (const requests of [1, 2]) {
      const response = await send('/v1/chat/completions', chat('hi'), { headers })
      assert.equal(response.status, 502)
      const { error } = (await response.json()) as { error: { code: string } }
      assert.equal(error.code, 'upstream_error')
      const entry = await entryOf(response)
      assert.deepEqual([entry.status, entry.outcome, entry.billing?.charged], [502, 'failed', null])
      assert.equal(upstream.requests.length, requests)
    }
  })

  it('charges nothing for a stream that breaks off before its first window has gone out', async (t) => {
    const { send, entryOf, upstream } = await guarded(t, [guard({ output: refuseSecrets })], (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of chatEvents(['one ', 'two ']).slice(0, 2)) res.write(event)
      setTimeout(() => res.destroy(), 20)
    })
    const headers = { 'idempotency-key': 'one' }
    for (const requests of [1, 2]) {
      const response = await send('/v1/chat/completions', chat('hi', { stream: true }), { headers })
      assert.equal(response.status, 502)
      assert.equal(response.headers.get('x-should-retry'), 'true')
      const { error } = (await response.json()) as { error: { code: string; message: string } }
      assert.equal(error.code, 'upstream_error')
      assert.doesNotMatch(error.message, /billed/)
      const entry = await entryOf(response)
      assert.deepEqual([entry.status, entry.outcome, entry.billing?.charged], [502, 'failed', null])
      // The caller may try again with the same key.
      assert.equal(upstream.requests.length, requests)
    }
  })

  const STREAMS: readonly [
    path: string,
    body: object,
    protocol: 'openai' | 'anthropic',
    script: UpstreamScript,
  ][] = [
    [
      '/v1/chat/completions',
      chat('hi'),
      'openai',
      events(chatEvents(['it is ', '4111 1111', ' 1111 1111', ' ok'])),
    ],
    [
      '/v1/messages',
      { ...chat('hi'), max_tokens: 9 },
      'anthropic',
      events(messageEvents(['it is ', '4111 1111', ' 1111 1111', ' ok'])),
    ],
    // Translated from chat chunks; its last events repeat the whole text.
    [
      '/v1/responses',
      { model: 'chat', input: 'hi' },
      'openai',
      events(chatEvents(['it is ', '4111 1111', ' 1111 1111', ' ok'])),
    ],
  ]
  for (const [path, body, protocol, script] of STREAMS)
    for (const stream of [true, false])
      it(`masks ${stream ? 'a streamed' : 'a plain'} answer of ${path}`, async (t) => {
        const { send, entryOf } = await guarded(
          t,
          [guard({ output: maskCards, windowChars: 8 }), guard({ name: 'late', output: refuseSecrets })],
          script,
          protocol,
        )
        const response = await send(path, { ...body, stream })
        const { text, isWhole } = await textOf(response)
        assert.equal(isWhole, true)
        assert.equal(response.status, 200, text)
        assert.doesNotMatch(text, /1111|4111/)
        const said = stream
          ? [...text.matchAll(/"(?:content|text|delta)":"([^"]*)"/g)].map(([, part]) => part).join('')
          : text
        assert.match(said, /it is \[removed\] ok/)
        const entry = await entryOf(response)
        assert.equal(entry.outcome, 'completed')
        assert.equal(entry.guards?.[0]?.decision, 'replaced')
      })

  it('ends a stream with the error event, and charges what was produced', async (t) => {
    const gate = Promise.withResolvers<void>()
    const [begin, first, second, ...rest] = chatEvents([
      'a long and harmless beginning, ',
      'that goes out, ',
      'then the secret',
      ' and more',
    ])
    const { send, entryOf } = await guarded(
      t,
      [guard({ output: refuseSecrets, windowChars: 12 })],
      async (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        for (const each of [begin, first, second]) res.write(each)
        await gate.promise
        for (const each of rest) res.write(each)
        res.end()
      },
    )
    const response = await send('/v1/chat/completions', chat('hi', { stream: true }))
    assert.equal(response.status, 200)
    gate.resolve()
    const { text, isWhole } = await textOf(response)
    assert.equal(isWhole, false)
    assert.match(text, /harmless/)
    assert.doesNotMatch(text, /then the secret|and more|\[DONE\]/)
    assert.match(text, /"code":"content_filtered"/)
    const entry = await entryOf(response)
    assert.deepEqual(
      [entry.status, entry.error_code, entry.outcome],
      [200, 'content_filtered', 'interrupted'],
    )
    assert.ok(Number(entry.billing?.charged) > 1, entry.billing?.charged ?? 'nothing')
  })

  it('refuses a stream with a status while nothing was sent', async (t) => {
    const { send, entryOf } = await guarded(
      t,
      [guard({ output: refuseSecrets })],
      events(chatEvents(['the ', 'secret'])),
    )
    const response = await send('/v1/chat/completions', chat('hi', { stream: true }))
    assert.equal(response.status, 400)
    assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'content_filtered')
    const entry = await entryOf(response)
    assert.deepEqual([entry.status, entry.outcome], [400, 'failed'])
    assert.equal(entry.billing?.charged, '3')
  })

  it('keeps the answer that a repetition finds in the call log as its caller got it', async (t) => {
    const { send, entryOf } = await guarded(t, [guard({ output: maskCards })], (res) =>
      chatAnswer(res, `it is ${CARD}`),
    )
    const headers = { 'idempotency-key': 'once' }
    const response = await send('/v1/chat/completions', chat('hi'), { headers })
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    const { response_body: kept } = await entryOf(response)
    assert.match(String(kept), /it is \[removed\]/)
    assert.doesNotMatch(String(kept), /1111/)
    assert.equal((await send('/v1/chat/completions', chat('hi'), { headers })).status, 409)
  })

  for (const [what, body, script] of [
    ['an answer', chat('hi'), (res) => chatAnswer(res, 'here is the secret')],
    ['a stream', chat('hi', { stream: true }), events(chatEvents(['the ', 'secret']))],
  ] as const satisfies readonly (readonly [string, object, UpstreamScript])[])
    it(`keeps the refusal of ${what} that is charged for a repetition`, async (t) => {
      const { send, entryOf, upstream } = await guarded(t, [guard({ output: refuseSecrets })], script)
      const headers = { 'idempotency-key': 'once' }
      const refused = await send('/v1/chat/completions', body, { headers })
      assert.equal(refused.status, 400)
      const text = await refused.text()
      const original = await entryOf(refused)
      assert.equal(original.response_body, text)
      assert.ok(Number(original.billing?.charged) > 1)
      const repeated = await send('/v1/chat/completions', body, { headers })
      assert.equal(repeated.status, 409)
      assert.equal(repeated.headers.get('x-original-request-id'), original.id)
      await repeated.arrayBuffer()
      assert.equal((await entryOf(repeated)).billing?.charged ?? null, null)
      assert.equal(upstream.requests.length, 1)
    })

  it('releases and charges a call whose caller leaves while its answer is checked', async (t) => {
    const checking = Promise.withResolvers<void>()
    const ids: string[] = []
    const { send, entryOf } = await guarded(
      t,
      [
        (req, _res, next) => {
          ids.push(callOf(req).id)
          next()
        },
        guard({
          output: () => {
            checking.resolve()
            return new Promise(() => {})
          },
          timeoutMs: 600_000,
        }),
      ],
      (res) => chatAnswer(res),
    )
    const leaving = new AbortController()
    const sent = send('/v1/chat/completions', chat('hi'), { signal: leaving.signal }).catch(() => {})
    await checking.promise
    leaving.abort()
    await sent
    await until(() => ids.length === 1, 'the call is known')
    const entry = await entryOf(new Response(null, { headers: { 'x-request-id': ids[0] as string } }))
    assert.deepEqual(
      [entry.status, entry.error_code, entry.outcome],
      [499, 'client_closed_request', 'interrupted'],
    )
    assert.equal(entry.billing?.charged, '4')
  })

  const stuckOn =
    (word: string, onStuck: () => void = () => {}): GuardFunction =>
    (text) => {
      if (!text.includes(word)) return 'allow'
      onStuck()
      return new Promise(() => {})
    }
  const stuckStream = events(chatEvents([...Array(8).fill('harmless, '), 'now it is stuck', ' and more']))

  it('ends a stream whose guard does not settle, charges what was produced, and serves the next call', async (t) => {
    const { send, entryOf } = await guarded(
      t,
      [guard({ name: 'slow', output: stuckOn('stuck'), windowChars: 20, timeoutMs: 50 })],
      (res, { json }, index) =>
        json.stream ? stuckStream(res, { json } as never, index) : chatAnswer(res, 'fine'),
    )
    const response = await send('/v1/chat/completions', chat('hi', { stream: true }))
    const { text } = await textOf(response)
    assert.match(text, /"code":"content_filtered"/)
    assert.doesNotMatch(text, /stuck|more|\[DONE\]/)
    const { error_code, billing, guards } = await entryOf(response)
    assert.deepEqual([error_code, guards?.[0]?.decision], ['content_filtered', 'failed'])
    assert.ok(Number(billing?.charged) > 1)
    assert.equal((await send('/v1/chat/completions', chat('hi'))).status, 200)
  })

  it('releases and charges a stream whose caller leaves while a window of it is checked', async (t) => {
    const checking = Promise.withResolvers<void>()
    const { send, entryOf, upstream } = await guarded(
      t,
      [guard({ output: stuckOn('stuck', checking.resolve), windowChars: 20, timeoutMs: 600_000 })],
      async (res, request, index) => {
        const [begin, ...rest] = chatEvents([...Array(8).fill('harmless, '), 'now it is stuck, ', 'and more'])
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(begin)
        for (const each of rest.slice(0, 10)) {
          res.write(each)
          await new Promise(setImmediate)
        }
        // It does not end by itself.
        await until(() => request.cut || index > 0, 'the gateway leaves')
      },
    )
    const leaving = new AbortController()
    const response = await send('/v1/chat/completions', chat('hi', { stream: true }), {
      signal: leaving.signal,
    })
    const reading = textOf(response)
    await checking.promise
    leaving.abort()
    assert.doesNotMatch((await reading).text, /stuck/)
    const entry = await entryOf(response)
    assert.deepEqual(
      [entry.error_code, entry.outcome, Number(entry.billing?.charged) > 1],
      ['client_closed_request', 'interrupted', true],
    )
    await until(() => upstream.requests[0]?.cut === true, 'the line is left, too')
  })
})

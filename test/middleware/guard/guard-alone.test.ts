import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import { type Call, callOf, errorEnvelope, type GuardOptions, guard } from '../../../lib/index.ts'
import { patterns } from '../../../lib/middleware/guard/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

type Handler = (req: express.Request, res: express.Response) => unknown

/** An app with a guard before its own handler. */
async function appWith(t: { after(run: () => unknown): void }, options: GuardOptions, handler: Handler) {
  const served = await serveApp((app) => {
    app.use(express.json(), guard(options))
    app.post('/chat', handler)
    app.use(errorEnvelope())
  })
  t.after(() => served.close())
  const send = (body: unknown, init: RequestInit = {}): Promise<Response> =>
    fetch(`${served.url}/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...init,
    })
  return { send }
}

const noSecrets: GuardOptions['input'] = (text) =>
  text.includes('secret') ? { refuse: 'it has a secret' } : 'allow'
const maskCards = patterns({ mask: [/\d{4}(?: \d{4}){3}/] })
const CARD = '4111 1111 1111 1111'

const codeOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { code: string } }).error.code

describe('guard in front of a handler of the app', () => {
  it('refuses a request before the handler runs, and lets others pass', async (t) => {
    let runs = 0
    const { send } = await appWith(t, { input: noSecrets }, (_req, res) => {
      runs++
      res.json({ ok: true })
    })
    const refused = await send({ messages: [{ content: [{ type: 'text', text: 'a secret' }] }] })
    assert.equal(refused.status, 400)
    const { error } = (await refused.json()) as { error: { code: string; message: string } }
    assert.deepEqual(
      [error.code, error.message],
      ['content_filtered', 'The content is not allowed: it has a secret.'],
    )
    assert.equal(runs, 0)
    assert.equal((await send({ messages: [{ content: 'hello' }] })).status, 200)
    assert.equal(runs, 1)
  })

  it('masks what the handler gets, arguments of tools included', async (t) => {
    const { send } = await appWith(t, { input: maskCards }, (req, res) => res.json(req.body))
    const response = await send({
      messages: [
        { role: 'user', content: `my card: ${CARD}` },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'pay', input: { card: CARD } }] },
        { role: 'assistant', tool_calls: [{ function: { name: 'pay', arguments: `{"card":"${CARD}"}` } }] },
      ],
    })
    assert.deepEqual(await response.json(), {
      messages: [
        { role: 'user', content: 'my card: [removed]' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 't', name: 'pay', input: { card: '[removed]' } }],
        },
        { role: 'assistant', tool_calls: [{ function: { name: 'pay', arguments: '{"card":"[removed]"}' } }] },
      ],
    })
  })

  const SECRET_PLACES: readonly (readonly [string, unknown])[] = [
    ['a text that begins as a data URL does', { messages: [{ content: 'data: a secret' }] }],
    ['a document that is plain text', { content: [{ source: { type: 'text', data: 'a secret' } }] }],
    [
      'the schema of a tool, below a member that is named as data is',
      { tools: [{ parameters: { properties: { data: { description: 'a secret' } } } }] },
    ],
    ['a list of texts', { input: ['', 'a secret'] }],
  ]
  for (const [place, body] of SECRET_PLACES)
    it(`finds what is not allowed in ${place}, in a request and in an answer`, async (t) => {
      const { send } = await appWith(t, { input: noSecrets }, (_req, res) => res.json({}))
      assert.equal((await send(body)).status, 400)
      const answering = await appWith(t, { output: noSecrets }, (_req, res) => res.json(body))
      assert.equal((await answering.send({})).status, 400)
    })

  it('finds it in a stream whose text begins as a data URL does', async (t) => {
    const { send } = await appWith(t, { output: noSecrets }, (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'data: a secret' } }] })}\n\n`,
      )
      res.end('data: [DONE]\n\n')
    })
    assert.equal((await send({})).status, 400)
  })

  it('reads no file as a text', async (t) => {
    const { send } = await appWith(t, { input: noSecrets }, (_req, res) => res.json({}))
    const url = 'data:image/png;base64,secret'
    const image = { type: 'image_url', image_url: { url } }
    const source = { type: 'base64', media_type: 'image/png', data: 'secret' }
    assert.equal((await send({ messages: [{ content: [image, { type: 'image', source }] }] })).status, 200)
  })

  it('checks a JSON answer, and declares the length of what takes its place', async (t) => {
    const { send } = await appWith(t, { output: maskCards }, (_req, res) =>
      res.json({ text: `it is ${CARD}` }),
    )
    const response = await send({})
    assert.equal(response.headers.get('content-length'), '{"text":"it is [removed]"}'.length.toString())
    assert.deepEqual(await response.json(), { text: 'it is [removed]' })
  })

  it('leaves the answer to HEAD the length that the handler declares', async (t) => {
    const served = await serveApp((app) => {
      app.use(express.json(), guard({ output: maskCards }))
      app.get('/text', (_req, res) => void res.json({ text: 'hello' }))
      app.use(errorEnvelope())
    })
    t.after(() => served.close())
    const lengthOf = async (method: string) => {
      const answer = await fetch(`${served.url}/text`, { method })
      return [answer.status, answer.headers.get('content-length'), answer.headers.get('etag')]
    }
    assert.deepEqual(await lengthOf('HEAD'), await lengthOf('GET'))
  })

  it('refuses an answer of which nothing was sent with a status of its own', async (t) => {
    const { send } = await appWith(t, { output: noSecrets }, (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/plain' })
      res.write('the sec')
      res.end('ret')
    })
    const response = await send({})
    assert.equal(response.status, 400)
    assert.equal(await codeOf(response), 'content_filtered')
  })

  it('holds a stream back by windows, and finds what lies across their border', async (t) => {
    const gate = Promise.withResolvers<void>()
    const { send } = await appWith(t, { output: maskCards, windowChars: 40 }, async (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      const say = (content: string) =>
        res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`)
      for (let i = 0; i < 12; i++) say('1234567 ')
      await gate.promise
      for (const part of [' 4111', ' 1111', ' 1111 11', '11 and so on']) say(part)
      res.end('data: [DONE]\n\n')
    })
    const response = await send({})
    const reader = (response.body as ReadableStream<Uint8Array>)
      .pipeThrough(new TextDecoderStream())
      .getReader()
    const first = await reader.read()
    assert.match(String(first.value), /1234567/, 'a window comes before the stream has ended')
    gate.resolve()
    let text = String(first.value)
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
    const said = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part).join('')
    assert.equal(said, `${'1234567 '.repeat(12)} [removed] and so on`)
    assert.match(text, /data: \[DONE\]\n\n$/)
  })

  it('ends a stream with the error event of the protocol once something was sent', async (t) => {
    const { send } = await appWith(t, { output: noSecrets, windowChars: 10 }, async (_req, res) => {
      res.setHeader('content-type', 'text/event-stream')
      for (const content of [
        'a harmless beginning, ',
        'long enough to go out; ',
        'now the sec',
        'ret, and more',
      ])
        res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`)
      res.end('data: [DONE]\n\n')
    })
    const response = await send({})
    assert.equal(response.status, 200)
    let text = ''
    const decoder = new TextDecoder()
    await assert.rejects(async () => {
      for await (const chunk of response.body as ReadableStream<Uint8Array>) text += decoder.decode(chunk)
    })
    assert.match(text, /harmless/)
    assert.match(text, /"code":"content_filtered"/)
    assert.doesNotMatch(text, /ret, and more|\[DONE\]/)
  })

  it('decides by onError when a function throws, takes too long, or returns something else', async (t) => {
    const broken: readonly GuardOptions['input'][] = [
      () => {
        throw new Error('thrown')
      },
      () => new Promise(() => {}),
      (() => 'yes') as unknown as GuardOptions['input'],
    ]
    for (const input of broken as NonNullable<GuardOptions['input']>[])
      for (const onError of ['refuse', 'allow'] as const) {
        const { send } = await appWith(t, { input, onError, timeoutMs: 20 }, (_req, res) => res.json({}))
        assert.equal((await send({ text: 'x' })).status, onError === 'allow' ? 200 : 400)
      }
  })

  it('stops a pattern that takes for ever, and checks the next text', async (t) => {
    const slow = patterns({ refuse: [/^(a+)+$/], timeoutMs: 1000 })
    const { send } = await appWith(t, { input: slow }, (_req, res) => res.json({}))
    assert.equal((await send({ text: `${'a'.repeat(40)}!` })).status, 400)
    assert.equal((await send({ text: 'ab' })).status, 200)
    assert.equal((await send({ text: 'aaa' })).status, 400)
  })

  it('writes what it decided to the call, and never the text', async (t) => {
    const traces: unknown[] = []
    const { send } = await appWith(t, { input: maskCards, output: noSecrets, name: 'cards' }, (req, res) => {
      const call = callOf(req)
      call.onEnd('test', ({ guards }) => {
        traces.push(...guards.map(({ durationMs: _, ...rest }) => rest))
      })
      res.json({ text: 'fine' })
    })
    await (await send({ text: CARD })).arrayBuffer()
    await until(() => traces.length > 0, 'the call has ended')
    assert.deepEqual(traces, [
      { guard: 'cards', on: 'input', decision: 'replaced', checks: 1 },
      { guard: 'cards', on: 'output', decision: 'allowed', checks: 1 },
    ])
  })

  it('lets go of a call whose caller leaves while it is checked', async (t) => {
    const begun = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<string | undefined>()
    const served = await serveApp((app) => {
      app.use(express.json(), (req, _res, next) => {
        const call = callOf(req)
        call.onEnd('test', ({ outcome }) => ended.resolve(outcome?.errorCode ?? undefined))
        next()
      })
      app.use(
        guard({
          input: () => {
            begun.resolve()
            return new Promise(() => {})
          },
          timeoutMs: 100_000,
        }),
        errorEnvelope(),
      )
    })
    t.after(() => served.close())
    const leaving = new AbortController()
    const sent = fetch(served.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"text":"x"}',
      signal: leaving.signal,
    }).catch(() => {})
    await begun.promise
    leaving.abort()
    await sent
    assert.equal(await ended.promise, 'client_closed_request')
  })

  for (const name of ['data', 'detail', 'status', 'id', 'format', 'model', 'signature', 'provider'])
    it(`checks each text of the app, whatever its name: ${name}`, async (t) => {
      const options = { input: noSecrets, output: noSecrets }
      const { send } = await appWith(t, options, (_req, res) => res.json({ [name]: 'a secret' }))
      assert.equal(await codeOf(await send({ [name]: 'a secret' })), 'content_filtered')
      assert.equal(await codeOf(await send({ [name]: { note: 'a secret' } })), 'content_filtered')
      assert.equal(await codeOf(await send({ [name]: 'fine' })), 'content_filtered')
    })

  it('checks the bytes that express.raw() leaves, if they are a text', async (t) => {
    const served = await serveApp((app) => {
      app.use(express.raw({ type: '*/*' }), guard({ input: patterns({ mask: [/\d+/], refuse: [/secret/] }) }))
      app.post('/', (req, res) => res.send(req.body))
      app.use(errorEnvelope())
    })
    t.after(() => served.close())
    const send = (body: string | Buffer) =>
      fetch(served.url, {
        method: 'POST',
        headers: { 'content-type': 'text/plain' },
        body: new Uint8Array(Buffer.from(body)),
      })
    assert.equal((await send('a secret')).status, 400)
    assert.equal(await (await send('card 4111')).text(), 'card [removed]')
    const image = Buffer.from([0xff, 0xd8, 0x31, 0x32])
    assert.deepEqual(Buffer.from(await (await send(image)).arrayBuffer()), image)
  })

  it('says what is missing when no parser is mounted', async (t) => {
    const served = await serveApp((app) => {
      app.use(guard({ input: noSecrets }), errorEnvelope())
    })
    t.after(() => served.close())
    const response = await fetch(served.url, { method: 'POST', body: 'x' })
    assert.equal(response.status, 500)
    assert.throws(() => guard({}), /give "input" or "output"/)
    assert.throws(() => patterns({ refuse: ['('] }), /not valid/)
  })

  it('refuses a body of a type that the parser does not read as the fault of its sender', async (t) => {
    let runs = 0
    const { send } = await appWith(t, { input: noSecrets }, (_req, res) => {
      runs++
      res.json({})
    })
    const response = await send('', { body: 'a secret', headers: { 'content-type': 'text/plain' } })
    assert.deepEqual([response.status, await codeOf(response), runs], [400, 'invalid_request', 0])
    assert.equal((await send('', { body: null, headers: {} })).status, 200)
  })
})

it('patterns that take long on the texts of one account delay another account by at most two of them', async () => {
  const check = patterns({ refuse: [/(a+)+b/], timeoutMs: 300 })
  const ended: string[] = []
  const ask = (accountId: string, text: string): Promise<unknown> =>
    Promise.resolve(check(text, { principal: { accountId } } as Call))
      .catch(() => {})
      .then(() => ended.push(accountId))
  const slow = Array.from({ length: 6 }, () => ask('slow', 'a'.repeat(40)))
  await ask('other', 'hello')
  assert.ok(ended.filter((account) => account === 'slow').length <= 2, `${ended}`)
  await Promise.all(slow)
})

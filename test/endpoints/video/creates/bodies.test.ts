import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  KEY,
  startVideoGateway,
  type VideoGateway,
  videoUpstreamFor,
} from '../../../support/video-gateway.ts'
import { ARK_VIDEO, createTask, errorOf, OPENAI_VIDEO } from '../../../support/video-protocols.ts'

const formOf = (members: Record<string, string | Blob>): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(members)) form.append(name, value)
  return form
}

const post = (
  gateway: VideoGateway,
  body: NonNullable<RequestInit['body']>,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(`${gateway.url}/v1/videos`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${KEY}`, ...headers },
  })

const multipart = { 'content-type': 'multipart/form-data; boundary=b' }

describe('a video asked for by a form', () => {
  it('is one asked for by JSON', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const form = formOf({
      model: 'video',
      prompt: 'ein Kätzchen',
      'provider[only][]': 'line-0',
      seconds: '8',
    })
    assert.equal((await post(gateway, form)).status, 200)
    assert.deepEqual(upstream.last.created, {
      model: 'upstream-video-0',
      prompt: 'ein Kätzchen',
      seconds: '8',
    })
  })

  it('is the same under another boundary, for its Idempotency-Key', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const file = new Blob([new Uint8Array([1, 2, 3])], { type: 'image/png' })
    const members = { model: 'video', prompt: 'x', input_reference: file }
    const key = { 'idempotency-key': 'k' }
    assert.equal((await post(gateway, formOf(members), key)).status, 200)
    assert.equal((await errorOf(await post(gateway, formOf(members), key))).code, 'idempotency_key_replayed')
    const other = {
      ...members,
      input_reference: new Blob([new Uint8Array([1, 2, 4])], { type: 'image/png' }),
    }
    assert.equal((await errorOf(await post(gateway, formOf(other), key))).code, 'idempotency_key_reused')
    assert.equal(upstream.seen('POST').length, 1)
  })

  it('is refused when it is too large, by its length and on the way', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const config = { bodyLimitBytes: 4096 }
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }], config })
    const large = new Blob([new Uint8Array(8192)], { type: 'image/png' })
    const declared = await post(gateway, formOf({ model: 'video', prompt: 'x', input_reference: large }))
    assert.equal((await errorOf(declared)).code, 'request_too_large')
    const stream = new Blob([new Uint8Array(8192)]).stream()
    const response = await fetch(`${gateway.url}/v1/videos`, {
      method: 'POST',
      body: stream,
      duplex: 'half',
      headers: { authorization: `Bearer ${KEY}`, ...multipart },
    } as RequestInit)
    assert.equal((await errorOf(response)).code, 'request_too_large')
    assert.equal(upstream.requests.length, 0)
  })

  const part = (name: string, value: string, more = '') =>
    `--b\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
  const good = part('model', 'video') + part('prompt', 'x')
  const broken: [string, string][] = [
    ['nothing', ''],
    ['no form at all', '{"model":"video"}'],
    ['a form that breaks off', good],
    [
      'a form that breaks off within a file',
      `${good}--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\nabc`,
    ],
    ['a part without a name', `${good}--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n`],
    ['a member twice', `${good}${part('prompt', 'y')}--b--\r\n`],
    ['a member and its own member', `${good}${part('prompt[a]', 'y')}--b--\r\n`],
    ['a prototype', `${good}${part('__proto__[polluted]', 'y')}--b--\r\n`],
    ['a name that is no name', `${good}${part('a[b', 'y')}--b--\r\n`],
    ['more parts than any endpoint has', `${good}${part('a[]', 'y').repeat(150)}--b--\r\n`],
    ['a prompt that is a file', `${part('model', 'video')}${part('prompt', 'x', '; filename="p"')}--b--\r\n`],
    ['no prompt', `${part('model', 'video')}--b--\r\n`],
    [
      'a JSON part that is none',
      `${good}--b\r\ncontent-disposition: form-data; name="j"\r\ncontent-type: application/json\r\n\r\n{\r\n--b--\r\n`,
    ],
  ]
  for (const [name, body] of broken) {
    it(`is refused: ${name}`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
      const response = await post(gateway, body, multipart)
      assert.equal(response.status, 400)
      assert.equal((await errorOf(response)).code, 'invalid_request')
      assert.equal(upstream.requests.length, 0)
      assert.equal(({} as { polluted?: unknown }).polluted, undefined)
    })
  }

  it('is refused without a boundary', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const response = await post(gateway, 'x', { 'content-type': 'multipart/form-data; x=y' })
    assert.equal((await errorOf(response)).code, 'invalid_request')
  })

  it('is for the OpenAI-style protocol: the task-style one is JSON', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const response = await fetch(gateway.url + ARK_VIDEO.path, {
      method: 'POST',
      body: formOf({ model: 'video' }),
      headers: { authorization: `Bearer ${KEY}` },
    })
    assert.equal((await errorOf(response)).code, 'invalid_request')
  })
})

describe('the wrong pairing of a model and an endpoint', () => {
  it('names the right endpoint', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const cases = [
      ['/v1/videos', OPENAI_VIDEO.body({ model: 'chat' }), 'POST /v1/chat/completions'],
      [ARK_VIDEO.path, ARK_VIDEO.body({ model: 'chat' }), 'POST /v1/chat/completions'],
      [
        '/v1/chat/completions',
        { model: 'video', messages: [{ role: 'user', content: 'x' }] },
        'POST /v1/videos',
      ],
    ] as const
    for (const [path, body, endpoint] of cases) {
      const response = await gateway.send('POST', path, body)
      const error = await errorOf(response)
      assert.deepEqual([response.status, error.code, error.param], [400, 'invalid_request', 'model'])
      assert.ok(error.message.includes(endpoint), error.message)
    }
    assert.equal(upstream.requests.length, 0)
  })

  it('an Anthropic-style line makes no videos', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const lines = [{ kind: 'openai', url: upstream.url, protocol: 'anthropic' }] as const
    const gateway = await startVideoGateway(t, { lines })
    const response = await gateway.send('POST', '/v1/videos', OPENAI_VIDEO.body())
    assert.equal((await errorOf(response)).code, 'no_candidate')
    const [eliminated] = (await gateway.entry(response)).routing?.eliminated ?? []
    assert.equal(eliminated?.reason, 'protocol')
  })

  const DETAILS = [
    [OPENAI_VIDEO, 'has no videos'],
    [ARK_VIDEO, 'has only chat/completions'],
  ] as const
  for (const [caller, detail] of DETAILS) {
    it(`a line without videos among its endpoints makes none (${caller.path})`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const { url } = upstream
      const without = { kind: 'openai', url, endpoints: ['chat/completions'] } as const
      const alone = await startVideoGateway(t, { lines: [without] })
      const refused = await alone.send('POST', caller.path, caller.body())
      assert.equal((await errorOf(refused)).code, 'no_candidate')
      const { eliminated } = (await alone.entry(refused)).routing ?? {}
      assert.deepEqual(eliminated, [{ line: 'line-0', reason: 'protocol', detail }])
      assert.equal(upstream.requests.length, 0)
      const lines = [without, { kind: 'openai', url, endpoints: ['videos'] }] as const
      const both = await startVideoGateway(t, { lines })
      assert.equal((await both.send('POST', caller.path, caller.body())).status, 200)
      assert.equal(upstream.last.created?.model, 'upstream-video-1')
    })
  }
})

describe('limits', () => {
  it('count creates and reads alike', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const accounts = [{ id: 'acme', limits: { rpm: 3 } }, { id: 'other' }]
    const gateway = await startVideoGateway(t, {
      lines: [{ kind: 'openai', url: upstream.url }],
      config: { accounts },
    })
    const id = await createTask(gateway, OPENAI_VIDEO)
    for (let i = 0; i < 2; i++) assert.equal((await gateway.send('GET', `/v1/videos/${id}`)).status, 200)
    const refused = await gateway.send('GET', `/v1/videos/${id}`)
    assert.equal(refused.status, 429)
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    assert.equal((await gateway.send('POST', '/v1/videos', OPENAI_VIDEO.body())).status, 429)
    assert.equal(upstream.seen('POST').length, 1)
  })
})

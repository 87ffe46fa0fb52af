import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type RetryOptions, withRetries } from '../../lib/client/index.ts'
import { type AnsweringServer, answering, cut, fine, post, refusal, type Sent } from './scripted-answers.ts'

const failing = refusal(502, 'upstream_error')
const soon = { firstDelayMs: 1 }
const CALL = { model: 'chat', messages: [{ role: 'user', content: 'Grüße' }] }

const keysOf = ({ sent }: AnsweringServer) => sent.map(({ headers }) => headers['idempotency-key'])

describe('the Idempotency-Key of a logical call', () => {
  it('is the same in all attempts of a POST, and different for the next call', async (t) => {
    const server = await answering(t, failing, cut, fine, failing, fine)
    const send = withRetries(fetch, soon)
    assert.equal((await send(server.url, post())).status, 200)
    assert.equal((await send(server.url, post())).status, 200)
    const [a, b, c, d, e] = keysOf(server)
    assert.match(String(a), /^retry-[0-9a-f]{32}$/)
    assert.deepEqual([b, c, e], [a, a, d])
    assert.notEqual(a, d)
  })

  it('is the caller’s own if there is one', async (t) => {
    const server = await answering(t, failing, fine)
    await withRetries(fetch, soon)(server.url, post(CALL, { 'Idempotency-Key': 'mine' }))
    assert.deepEqual(keysOf(server), ['mine', 'mine'])
  })

  it('is created as the options state', async (t) => {
    const server = await answering(t, fine)
    await withRetries(fetch, { newIdempotencyKey: () => 'order 7' })(server.url, post())
    assert.deepEqual(keysOf(server), ['order 7'])
  })

  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
    it(`is not sent with a ${method}`, async (t) => {
      const server = await answering(t, fine)
      await withRetries(fetch, soon)(server.url, { method })
      assert.deepEqual(keysOf(server), [undefined])
    })
  }
})

describe('a request without an answer', () => {
  for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
    it(`${method}: is sent again, four times in all, and then rejects as fetch does`, async (t) => {
      const server = await answering(t, cut)
      const call = withRetries(fetch, soon)(server.url, { method })
      await assert.rejects(call, { name: 'TypeError', message: 'fetch failed' })
      assert.equal(server.sent.length, 4)
    })
  }

  it('PATCH: is not sent again, because it may have been processed', async (t) => {
    const server = await answering(t, cut)
    await assert.rejects(withRetries(fetch, soon)(server.url, { method: 'PATCH' }), TypeError)
    assert.equal(server.sent.length, 1)
  })

  it('that cannot be sent at all is not retried', async () => {
    let sent = 0
    const counting: typeof fetch = (...given) => {
      sent++
      return fetch(...given)
    }
    const send = withRetries(counting, soon)
    await assert.rejects(send('http://'), TypeError)
    await assert.rejects(send('http://127.0.0.1', { headers: { 'bad header': 'x' } }), TypeError)
    assert.equal(sent, 0)
  })
})

/** The two requests that two attempts with a body have sent. */
async function sentTwice(
  t: TestContext,
  init: RequestInit,
  options: RetryOptions = {},
): Promise<readonly [Sent, Sent]> {
  const server = await answering(t, failing, fine)
  const response = await withRetries(fetch, { ...soon, ...options })(server.url, { method: 'POST', ...init })
  assert.equal(response.status, 200)
  const [first, second] = server.sent
  assert.ok(first && second && server.sent.length === 2)
  assert.deepEqual(second.body, first.body, 'the same bytes')
  assert.equal(second.headers['content-type'], first.headers['content-type'])
  return [first, second]
}

/** A body that can be read once, piece by piece. */
const streamOf = (text: string): ReadableStream =>
  new ReadableStream({
    start(controller) {
      for (const piece of text) controller.enqueue(new TextEncoder().encode(piece))
      controller.close()
    },
  })
const streamed = (text: string): RequestInit & { duplex: 'half' } => ({
  body: streamOf(text),
  duplex: 'half',
})

describe('a body is sent again byte for byte', () => {
  const text = JSON.stringify(CALL)
  const bytes = new TextEncoder().encode(text)
  const bodies: Record<string, [body: NonNullable<RequestInit['body']>, type: string | undefined]> = {
    'a string': [text, 'text/plain;charset=UTF-8'],
    bytes: [bytes, undefined],
    'an ArrayBuffer': [bytes.buffer, undefined],
    'a Blob': [new Blob([text], { type: 'application/json' }), 'application/json'],
  }
  for (const [name, [body, type]] of Object.entries(bodies)) {
    it(name, async (t) => {
      const [first] = await sentTwice(t, { body })
      assert.equal(first.body.toString(), text)
      assert.equal(first.headers['content-type'], type)
    })
  }

  it('URLSearchParams', async (t) => {
    const [first] = await sentTwice(t, { body: new URLSearchParams({ a: 'b c' }) })
    assert.equal(first.body.toString(), 'a=b+c')
    assert.equal(first.headers['content-type'], 'application/x-www-form-urlencoded;charset=UTF-8')
  })

  it('a form, with the same boundary, because other bytes would be another request', async (t) => {
    const form = new FormData()
    form.set('prompt', 'A cat')
    form.set('input_reference', new Blob(['png']), 'cat.png')
    const [first] = await sentTwice(t, { body: form })
    const [, boundary] = /boundary=(.+)$/.exec(String(first.headers['content-type'])) ?? []
    assert.ok(boundary && first.body.toString().includes(boundary))
    assert.match(first.body.toString(), /cat\.png/)
  })

  it('a Request, with its own headers', async (t) => {
    const server = await answering(t, failing, fine)
    const request = new Request(`${server.url}/v1/x`, post(CALL, { 'x-own': '1' }))
    assert.equal((await withRetries(fetch, soon)(request)).status, 200)
    assert.deepEqual(
      server.sent.map(({ method, path, headers, body }) => [method, path, headers['x-own'], body.toString()]),
      [1, 2].map(() => ['POST', '/v1/x', '1', text]),
    )
  })

  it('a stream, if the options allow reading it into memory', async (t) => {
    const [first] = await sentTwice(t, streamed(text), { bufferStreams: true })
    assert.equal(first.body.toString(), text)
  })

  it('but any other stream is sent once, with a key', async (t) => {
    for (const answer of [failing, cut]) {
      const server = await answering(t, answer)
      const call = withRetries(fetch, soon)(server.url, { method: 'POST', ...streamed(text) })
      if (answer === failing) assert.equal((await call).status, 502)
      else await assert.rejects(call, TypeError)
      assert.deepEqual(
        server.sent.map(({ body }) => body.toString()),
        [text],
      )
      assert.match(String(keysOf(server)[0]), /^retry-/)
    }
  })
})

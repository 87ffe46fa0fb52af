import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { chatBody } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatChunk,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { type KeyedGateway, keyedGateway } from './keyed-gateway.ts'

async function upstreamFor(t: TestContext, script?: UpstreamScript): Promise<ScriptedUpstream> {
  const upstream = await startUpstream(script)
  t.after(() => upstream.close())
  return upstream
}

/** Makes a call whose caller leaves, and waits until the gateway is done with it. Answers its request id. */
async function leave(gateway: KeyedGateway, when: Promise<unknown>, body: unknown): Promise<string> {
  const leaving = new AbortController()
  const call = gateway
    .exchange('k', body, { signal: leaving.signal })
    .catch((error: Error) => assert.equal(error.name, 'AbortError'))
  await when
  const [open] = gateway.openCalls
  assert.ok(open)
  leaving.abort()
  await call
  await until(() => gateway.openCalls.size === 0, 'the end of the call')
  return open.id
}

/** The result of a request with the same key and content; a release may be under way when the caller is gone. */
async function later(gateway: KeyedGateway, body: unknown) {
  for (;;) {
    const got = await gateway.exchange('k', body)
    if (got.errorCode !== 'idempotency_key_in_use') return got
  }
}

const STREAM = chatBody({ stream: true })

describe('the key of a call', () => {
  it('is free again when the caller left before anything was produced', async (t) => {
    for (const body of [chatBody(), STREAM]) {
      const asked = Promise.withResolvers<void>()
      const upstream = await upstreamFor(t, () => asked.resolve())
      const gateway = await keyedGateway(t, { lines: [upstream.url] })
      await leave(gateway, asked.promise, body)
      upstream.script = (res) => (body === STREAM ? stream(res, chatEvents(['Hi'])) : chatAnswer(res))
      assert.equal((await later(gateway, body)).status, 200)
      assert.equal(upstream.requests.length, 2)
    }
  })

  it('is used up when the caller left in the middle of a stream, and the log keeps what was sent', async (t) => {
    const upstream = await upstreamFor(t, (res) =>
      stream(res, chatEvents(['Hello']).slice(0, 2), { end: false }),
    )
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const leaving = new AbortController()
    const response = await gateway.post('k', STREAM, { signal: leaving.signal })
    const first = response.headers.get('x-request-id') ?? ''
    const { value } = await response.body!.getReader().read()
    leaving.abort()
    await until(() => gateway.openCalls.size === 0, 'the end of the call')
    const got = await later(gateway, STREAM)
    assert.equal(got.errorCode, 'idempotency_key_replayed')
    assert.equal(got.envelope().error.details?.original_request_id, first)
    const { response_body, outcome } = await gateway.entry(first)
    assert.equal(outcome, 'interrupted')
    assert.ok(response_body?.startsWith(Buffer.from(value!).toString()))
    assert.equal(upstream.requests.length, 1)
  })

  for (const streamed of [false, true]) {
    it(`is used up when the answer was drained for a caller who left, and the log keeps it whole (${streamed ? 'streamed' : 'plain'})`, async (t) => {
      const go = Promise.withResolvers<void>()
      const asked = Promise.withResolvers<void>()
      const words = ['one', 'two', 'three']
      const upstream = await upstreamFor(t, async (res) => {
        asked.resolve()
        await go.promise
        if (streamed) await stream(res, chatEvents(words))
        else chatAnswer(res, words.join())
      })
      const gateway = await keyedGateway(t, { lines: [upstream.url], route: { onDisconnect: 'drain' } })
      const leaving = new AbortController()
      const body = streamed ? STREAM : chatBody()
      const call = gateway.exchange('k', body, { signal: leaving.signal }).catch(() => {})
      await asked.promise
      const [open] = gateway.openCalls
      leaving.abort()
      await call
      await until(() => open!.left, 'the gateway noticing')
      go.resolve()
      await until(() => gateway.openCalls.size === 0, 'the end of the call')
      const got = await later(gateway, body)
      assert.equal(got.errorCode, 'idempotency_key_replayed')
      const original = got.envelope().error.details?.original_request_id
      assert.ok(original)
      const { response_body } = await gateway.entry(original)
      for (const word of words) assert.match(response_body ?? '', new RegExp(word))
      if (streamed) assert.match(response_body ?? '', /data: \[DONE\]\n\n$/)
      else assert.equal(JSON.parse(response_body ?? '').choices[0].message.content, words.join())
    })
  }

  it('is used up once when a second line answered for the first', async (t) => {
    const down = await upstreamFor(t, (res) => answerJson(res, 500, {}))
    const good = await upstreamFor(t)
    const gateway = await keyedGateway(t, { lines: [down.url, good.url] })
    const first = await gateway.exchange('k')
    assert.equal(first.status, 200)
    const second = await gateway.exchange('k')
    assert.equal(second.errorCode, 'idempotency_key_replayed')
    assert.deepEqual([down.requests.length, good.requests.length], [1, 1])
    assert.equal((await gateway.entry(first.requestId)).response_body, first.text)
  })

  it('is used up when the stream broke off behind its first output', async (t) => {
    const upstream = await upstreamFor(t, (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(chatChunk({ content: 'Hel' }), () => setTimeout(() => res.destroy(), 20))
    })
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const first = await gateway.exchange('k', STREAM)
    assert.equal(first.broken, true)
    assert.match(first.text, /"code":"upstream_error"/)
    const second = await gateway.exchange('k', STREAM)
    assert.equal(second.errorCode, 'idempotency_key_replayed')
    assert.equal(upstream.requests.length, 1)
    const { usage, response_body } = await gateway.entry(first.requestId)
    assert.ok(usage && usage.output_tokens > 0)
    assert.equal(response_body, first.text)
  })

  it('is free again when the stream broke off before any output, or had none', async (t) => {
    const answers: UpstreamScript[] = [
      (res) => stream(res, [chatChunk({ role: 'assistant', content: '' })]),
      (res) => stream(res, chatEvents([])),
      (res) => stream(res, chatEvents(['Hi'])),
    ]
    const upstream = await upstreamFor(t, (res, request, i) => answers[i]?.(res, request, i))
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const codes: unknown[] = []
    for (let i = 0; i < 4; i++) codes.push((await gateway.exchange('k', STREAM)).errorCode)
    assert.deepEqual(codes, ['upstream_error', 'empty_completion', undefined, 'idempotency_key_replayed'])
  })

  it('keeps no more of a long answer than it may, and says so', async (t) => {
    const upstream = await upstreamFor(t, (res) => chatAnswer(res, 'é'.repeat(500)))
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { answerLimitBytes: 301 },
    })
    const first = await gateway.exchange('k')
    const { response_body } = await gateway.entry(first.requestId)
    const [kept, mark] = (response_body ?? '').split('\n')
    assert.equal(mark, '[cut after 301 bytes]')
    assert.ok(first.text.startsWith(kept!) && Buffer.byteLength(kept!) >= 300)
  })
})

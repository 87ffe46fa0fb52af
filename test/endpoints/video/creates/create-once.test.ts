import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { closedPort } from '../../../support/scripted-upstream.ts'
import { startVideoGateway, type VideoGateway, videoUpstreamFor } from '../../../support/video-gateway.ts'
import { errorOf, VIDEO_PROTOCOLS } from '../../../support/video-protocols.ts'
import { json, type VideoUpstream } from '../../../support/video-upstream.ts'

interface Pair {
  readonly gateway: VideoGateway
  readonly first: VideoUpstream
  readonly second: VideoUpstream
}

const TIMEOUTS = { connectMs: 5000, firstByteMs: 1500, idleMs: 1500, totalMs: 8000 }

async function pairOf(t: TestContext, kind: 'openai' | 'ark', firstUrl?: string): Promise<Pair> {
  const [first, second] = [await videoUpstreamFor(t), await videoUpstreamFor(t)]
  const lines = [
    { kind, url: firstUrl ?? first.url, timeouts: TIMEOUTS },
    { kind, url: second.url },
  ]
  return { first, second, gateway: await startVideoGateway(t, { lines }) }
}

type Doing = (res: ServerResponse) => void

describe('a create that the first line surely did not take goes to the next', () => {
  const refusals: [string, Doing][] = [
    ['429', (res) => json(res, 429, { error: { message: 'slow down' } }, { 'retry-after': '7' })],
    ['503', (res) => json(res, 503, {})],
    ['401', (res) => json(res, 401, { error: { message: 'bad key' } })],
    ['404', (res) => json(res, 404, {})],
  ]
  for (const { kind, path, body } of VIDEO_PROTOCOLS) {
    for (const [name, refuse] of refusals) {
      it(`${kind}: ${name}`, async (t) => {
        const { gateway, first, second } = await pairOf(t, kind)
        first.script = (_req, res) => {
          refuse(res)
          return true
        }
        const response = await gateway.send('POST', path, body())
        assert.equal(response.status, 200)
        assert.deepEqual([first.seen('POST').length, second.seen('POST').length], [1, 1])
        const attempts = (await gateway.entry(response)).routing?.attempts.map(({ line, outcome }) => [
          line,
          outcome,
        ])
        assert.equal(attempts?.length, 2)
        assert.deepEqual(attempts?.[1], ['line-1', 'completed'])
      })
    }

    it(`${kind}: a connection that is never made`, async (t) => {
      const { gateway, second } = await pairOf(t, kind, `http://127.0.0.1:${await closedPort()}`)
      const response = await gateway.send('POST', path, body())
      assert.equal(response.status, 200)
      assert.equal(second.seen('POST').length, 1)
    })
  }
})

describe('a create that the first line may have taken goes nowhere else, and its money stays held', () => {
  const doubts: [string, string, number, Doing][] = [
    ['no answer in time', 'upstream_timeout', 504, () => {}],
    ['a connection that breaks', 'upstream_error', 502, (res) => res.destroy()],
    [
      'an answer that breaks off',
      'upstream_error',
      502,
      (res) => {
        res.writeHead(200, { 'content-length': 100 }).write('{"id":')
        setTimeout(() => res.destroy(), 20)
      },
    ],
    ['500', 'upstream_error', 502, (res) => json(res, 500, {})],
    ['502', 'upstream_error', 502, (res) => json(res, 502, {})],
    ['504', 'upstream_error', 502, (res) => json(res, 504, {})],
    ['an answer without an id', 'upstream_error', 502, (res) => json(res, 200, { status: 'queued' })],
    ['an answer that is no JSON', 'upstream_error', 502, (res) => res.end('<html>')],
    ['an id that would be another path', 'upstream_error', 502, (res) => json(res, 200, { id: '..' })],
  ]
  for (const { kind, path, body } of VIDEO_PROTOCOLS) {
    for (const [name, code, status, fail] of doubts) {
      it(`${kind}: ${name}`, async (t) => {
        const { gateway, first, second } = await pairOf(t, kind)
        first.script = (_req, res) => {
          fail(res)
          return true
        }
        const response = await gateway.send('POST', path, body(), { 'idempotency-key': 'k' })
        assert.equal(response.status, status)
        assert.equal(response.headers.get('x-should-retry'), 'false')
        const error = await errorOf(response)
        assert.equal(error.code, code)
        assert.match(error.message, /^It is unknown whether the video was started/)
        assert.deepEqual([first.seen('POST').length, second.seen('POST').length], [1, 0])
        const { spent, leased } = await gateway.money()
        assert.ok(spent === 0n && leased > 0n)
        const [task] = await gateway.tasks.list({}, { order: 'newest', limit: 2 })
        assert.equal(task?.state, 'unresolved')
        await gateway.entry(response)
        // A repetition gets the same answer: it could make a second video, and an invitation to retry would not end.
        const again = await gateway.send('POST', path, body(), { 'idempotency-key': 'k' })
        assert.equal(again.status, status)
        assert.equal(again.headers.get('x-should-retry'), 'false')
        assert.equal(again.headers.get('x-original-request-id'), response.headers.get('x-request-id'))
        const repeated = await errorOf(again)
        assert.deepEqual([repeated.code, repeated.message], [error.code, error.message])
        const other = await gateway.send(
          'POST',
          path,
          kind === 'ark'
            ? body({ content: [{ type: 'text', text: 'another' }] })
            : body({ prompt: 'another' }),
          { 'idempotency-key': 'k' },
        )
        assert.equal((await errorOf(other)).code, 'idempotency_key_reused')
        assert.deepEqual([first.seen('POST').length, second.seen('POST').length], [1, 0])
        const list = await (await gateway.send('GET', path)).text()
        assert.ok(!list.includes('video_'), 'what nobody knows of is not listed')
      })
    }
  }

  it('over a kept-alive connection that the line closes under it, too', async (t) => {
    const { gateway, first, second } = await pairOf(t, 'openai')
    const { path, body } = VIDEO_PROTOCOLS[0] as (typeof VIDEO_PROTOCOLS)[number]
    assert.equal((await gateway.send('POST', path, body())).status, 200)
    await gateway.send(
      'GET',
      `${path}/${(await gateway.tasks.list({}, { order: 'newest', limit: 1 }))[0]?.id}`,
    )
    first.script = (req, res) => {
      if (req.method === 'POST') res.socket?.resetAndDestroy()
      return req.method === 'POST'
    }
    assert.equal((await gateway.send('POST', path, body())).status, 502)
    assert.deepEqual([first.seen('POST').length, second.seen('POST').length], [2, 0])
  })
})

describe('a create that no line takes', () => {
  for (const { kind, path, body } of VIDEO_PROTOCOLS) {
    it(`${kind}: the fault that the line finds in it is returned, nothing is held, and the key is free`, async (t) => {
      const { gateway, first, second } = await pairOf(t, kind)
      first.script = (_req, res) => {
        json(res, 400, { error: { code: 'InvalidParameter', message: 'at 10.0.0.7: no', param: 'model' } })
        return true
      }
      const response = await gateway.send('POST', path, body(), { 'idempotency-key': 'k' })
      assert.equal(response.status, 400)
      const error = await errorOf(response)
      assert.equal(error.code, 'invalid_request')
      assert.ok(!error.message.includes('10.0.0.7'))
      assert.equal(second.requests.length, 0)
      assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
      first.script = () => false
      assert.equal((await gateway.send('POST', path, body(), { 'idempotency-key': 'k' })).status, 200)
    })
  }

  it('a balance that does not cover it is refused before anything is sent', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, {
      lines: [{ kind: 'openai', url: upstream.url }],
      config: { accounts: [{ id: 'acme', balance: '0.10' }, { id: 'other' }] },
    })
    const response = await gateway.send('POST', '/v1/videos', { model: 'video', prompt: 'x', seconds: '8' })
    assert.equal(response.status, 402)
    assert.equal((await errorOf(response)).code, 'insufficient_balance')
    assert.equal(upstream.requests.length, 0)
    const { billing } = await gateway.entry(response)
    assert.deepEqual([billing?.required, billing?.available], ['0.8', '0.1'])
  })
})

describe('a create whose caller leaves', () => {
  it('goes on, and its task is there', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    const leaving = new AbortController()
    const answered = Promise.withResolvers<void>()
    upstream.script = async (req) => {
      if (req.method === 'POST') {
        leaving.abort()
        await answered.promise
      }
      return false
    }
    const call = fetch(`${gateway.url}/v1/videos`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: 'Bearer sk-video-1', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'video', prompt: 'x' }),
    })
    await assert.rejects(call)
    answered.resolve()
    for (let tries = 0; tries < 400; tries++) {
      const [task] = await gateway.tasks.list({ taken: true }, { order: 'newest', limit: 1 })
      if (task) {
        assert.equal(task.state, 'queued')
        return
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    assert.fail('the task was not recorded')
  })
})

describe('an Idempotency-Key', () => {
  for (const { kind, path, body } of VIDEO_PROTOCOLS) {
    it(`${kind}: makes one video, however often it is sent`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind, url: upstream.url }] })
      const first = await gateway.send('POST', path, body(), { 'idempotency-key': 'k' })
      const text = await first.text()
      const again = await gateway.send('POST', path, body(), { 'idempotency-key': 'k' })
      assert.equal((await errorOf(again)).code, 'idempotency_key_replayed')
      assert.equal(again.headers.get('x-original-request-id'), first.headers.get('x-request-id'))
      const other = await gateway.send('POST', path, body({ seed: -1 }), { 'idempotency-key': 'k' })
      assert.equal((await errorOf(other)).code, 'idempotency_key_reused')
      assert.equal(upstream.seen('POST').length, 1)
      assert.equal((await gateway.entry(first)).response_body, text)
    })
  }
})

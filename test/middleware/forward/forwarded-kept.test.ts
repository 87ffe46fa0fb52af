import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { KeptThings, MemoryKeptStore } from '../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type ByteScript, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'

const MADE = '{"id":"file_1","object":"file"}'
const JSON_TYPE = { 'content-type': 'application/json' }

/** A line that makes `file_1` of every POST, and answers anything else as a test says. */
async function keeping(
  t: TestContext,
  answer: ByteScript,
  made: ByteScript = (_req, res) => void res.writeHead(200, JSON_TYPE).end(MADE),
) {
  const upstream = await byteUpstream(t, (req, res) => {
    req.resume().on('end', () => (req.method === 'POST' ? made : answer)(req, res))
  })
  const store = new MemoryKeptStore()
  const kept = new KeptThings({ store })
  t.after(() => kept.close())
  const gateway = await forwardGateway(t, { lines: [upstream.url], kept })
  const ask = (method: string, path = '/v1/files/file_1') => gateway.ask(path, { method })
  const isOwned = async () => (await store.find('acme', [{ kind: 'file', id: 'file_1' }])).length === 1
  return { gateway, upstream, store, ask, isOwned, make: () => ask('POST', '/v1/files') }
}

describe('what an account owns', () => {
  for (const [status, stays] of [
    [200, false],
    [202, false],
    [204, false],
    [304, true],
    [400, true],
    [404, true],
    [409, true],
    [412, true],
    [416, true],
    [500, true],
  ] as const)
    it(`${stays ? 'is its own still' : 'is nobody’s any more'} where a DELETE is answered with ${status}`, async (t) => {
      const { ask, make, isOwned } = await keeping(
        t,
        (_req, res) => void res.writeHead(status, JSON_TYPE).end(),
      )
      await (await make()).text()
      await (await ask('DELETE')).text()
      assert.equal(await isOwned(), stays)
    })

  it('is only what an answer with a body says', async (t) => {
    for (const status of [304, 412, 404]) {
      const { make, isOwned } = await keeping(
        t,
        () => {},
        (_req, res) => void res.writeHead(status, JSON_TYPE).end(status === 304 ? undefined : MADE),
      )
      await (await make()).text()
      assert.equal(await isOwned(), false, `${status}`)
    }
  })

  it('is what an answer says behind a byte order mark', async (t) => {
    const { make, isOwned } = await keeping(
      t,
      () => {},
      (_req, res) => void res.writeHead(200, JSON_TYPE).end(`\ufeff${MADE}`),
    )
    assert.deepEqual(await (await make()).json(), JSON.parse(MADE))
    assert.equal(await isOwned(), true)
  })

  it('is recorded before its answer is sent, or there is no answer', async (t) => {
    const { make, store, gateway, upstream } = await keeping(t, () => {})
    t.mock.method(store, 'remember', async () => {
      throw new Error('away')
    })
    const answer = await make()
    assert.equal(answer.status, 500)
    const { error, request_id } = await envelopeOf(answer)
    assert.equal(error.code, 'internal_error')
    assert.equal((await gateway.entry(request_id)).outcome, 'failed')
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
    assert.equal(upstream.requests.length, 1)
  })
})

describe('events whose first one tells what was made', () => {
  const EVENTS = ['event: made\ndata: {"id":"file_1"}\n\n', 'data: more\n\n']

  it('go on behind it, and are all there', async (t) => {
    const goOn = Promise.withResolvers<void>()
    const { make, isOwned } = await keeping(
      t,
      () => {},
      async (_req, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(EVENTS[0])
        await goOn.promise
        res.end(EVENTS[1])
      },
    )
    const answer = await make()
    assert.equal(await isOwned(), true)
    goOn.resolve()
    assert.equal(await answer.text(), EVENTS.join(''))
  })

  it('may be one only', async (t) => {
    const { make, isOwned } = await keeping(
      t,
      () => {},
      (_req, res) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(EVENTS[0]),
    )
    assert.equal(await (await make()).text(), EVENTS[0])
    assert.equal(await isOwned(), true)
  })
})

describe('the head of an answer that was read', () => {
  it('describes what is sent, and nothing that the line has compressed', async (t) => {
    const described = {
      'content-digest': 'sha-256=:x:',
      'content-md5': 'x',
      'repr-digest': 'sha-256=:x:',
      etag: '"1"',
      'cache-control': 'no-store',
    }
    const packed = gzipSync(MADE)
    const { make } = await keeping(
      t,
      () => {},
      (_req, res) => {
        const length = { 'content-encoding': 'gzip', 'content-length': packed.length }
        res.writeHead(201, { ...JSON_TYPE, ...described, ...length }).end(packed)
      },
    )
    const answer = await make()
    assert.equal(answer.status, 201)
    for (const name of ['content-digest', 'content-md5', 'repr-digest', 'etag', 'content-encoding'])
      assert.equal(answer.headers.get(name), null, name)
    assert.equal(answer.headers.get('content-length'), String(MADE.length))
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    assert.equal(await answer.text(), MADE)
  })

  it('is that of the line where nothing was read', async (t) => {
    const { ask, make } = await keeping(t, (_req, res) => {
      res.writeHead(200, { ...JSON_TYPE, etag: '"1"', 'content-length': MADE.length }).end(MADE)
    })
    await (await make()).text()
    const answer = await ask('GET')
    assert.deepEqual(
      [answer.headers.get('etag'), answer.headers.get('content-length')],
      ['"1"', String(MADE.length)],
    )
    assert.equal(await answer.text(), MADE)
  })
})

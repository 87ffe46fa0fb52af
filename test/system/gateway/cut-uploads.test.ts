import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assemble } from '../../../examples/gateway/app.ts'
import { Readiness } from '../../../examples/gateway/serving/readiness.ts'
import { HTTP_BOUNDS, httpServer } from '../../../examples/gateway/serving/server.ts'
import { drainServer } from '../../../examples/gateway/serving/shutdown.ts'
import { openLimitStores } from '../../../examples/gateway/stores/limit-stores.ts'
import { openDurableStores } from '../../../examples/gateway/stores/stores.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { rawClient, recordingLogger } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { until } from '../../support/until.ts'

const KEY = 'sk-caller'
const ONE_SLOT = { limits: { concurrency: 1 }, balance: '1' }

/** The assembled gateway on a server with short limits, over an upstream that reads uploads and answers whole ones. */
async function uploadGateway(t: TestContext) {
  const upstream = await byteUpstream(t, (req, res) => void req.resume().on('end', () => res.end('{}')))
  const logger = recordingLogger()
  const config = loadConfig({
    accounts: [{ id: 'acme', ...ONE_SLOT }],
    keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [
      { id: 'line', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'c' } },
    ],
    passThrough: [{ path: '/v1/audio/*rest', lines: ['line'], price: { perRequest: '0.01' }, raw: true }],
  })
  const durable = await openDurableStores('memory:', config, logger)
  const { limits } = await openLimitStores(undefined, logger)
  const readiness = new Readiness(durable.ping)
  const gateway = assemble({
    config,
    stores: { ...durable, limits },
    logger,
    readiness,
    adminToken: undefined,
  })
  const { upgrades, abortCalls, connections } = gateway
  const bounds = {
    ...HTTP_BOUNDS,
    headersTimeout: 3000,
    requestTimeout: 3000,
    connectionsCheckingInterval: 50,
  }
  const server = httpServer(gateway, bounds)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await gateway.close()
    await durable.close()
  })
  const { port } = server.address() as AddressInfo
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/octet-stream\r\n`
  const ends = () => logger.lines.filter(({ message }) => message === 'call').map(({ fields }) => fields)
  return {
    upstream,
    server,
    draining: { server, connections, upgrades, readiness, abortCalls, noticeMs: 0, logger },
    /** Begins an upload; resolves once its beginning has reached the upstream. */
    async upload(length = 1_000_000) {
      const client = rawClient(
        port,
        `${head('/v1/audio/upload')}content-length: ${length}\r\n\r\n${'x'.repeat(5000)}`,
      )
      await until(() => upstream.requests.length > 0 && upstream.connections.size > 0)
      return client
    },
    /** Waits until the upload has ended and its connection, slot and hold are free; resolves with how it was logged. */
    async ended() {
      await until(() => upstream.connections.size === 0, 'the end of the upstream', 5000)
      await until(() => ends().length > 0, 'the end of the call', 5000)
      const [{ requestId, status, code, outcome } = {}, ...more] = ends()
      assert.deepEqual(more, [])
      const entry = await entryWithin(5000, () => durable.calls.find(String(requestId)))
      assert.deepEqual([entry?.status, entry?.error_code, entry?.outcome], [status, code ?? null, outcome])
      assert.deepEqual((await durable.ledger.check()).violations, [])
      return [status, code, outcome]
    },
    /** Sends an upload that is whole, on a connection of its own. */
    async whole() {
      const request = `${head('/v1/audio/next')}connection: close\r\ncontent-length: 2\r\n\r\nhi`
      return (await rawClient(port, request).end()).slice(9, 12)
    },
  }
}

async function entryWithin<Entry>(ms: number, find: () => Promise<Entry>): Promise<Entry> {
  const deadline = performance.now() + ms
  for (;;) {
    const found = await find()
    if (found || performance.now() > deadline) return found
    await sleep(5)
  }
}

describe('an upload that does not come to its end', () => {
  it('is refused with 408 when its time is up, and nothing of it is left', async (t) => {
    const gateway = await uploadGateway(t)
    const client = await gateway.upload()
    const answer = await client.end()
    assert.match(answer, /^HTTP\/1\.1 408 /)
    assert.match(answer, /x-should-retry: true/i)
    assert.deepEqual(await gateway.ended(), [408, 'invalid_request', 'refused'])
    assert.equal(await gateway.whole(), '200', 'its slot is free')
  })

  it('is logged as left when the caller closes, and nothing of it is left', async (t) => {
    const gateway = await uploadGateway(t)
    const client = await gateway.upload()
    client.socket.end()
    assert.equal(await client.end(), '')
    assert.deepEqual(await gateway.ended(), [499, 'client_closed_request', 'interrupted'])
    assert.equal(await gateway.whole(), '200', 'its slot is free')
  })

  it('is ended with an error when the gateway stops and it has taken too long', async (t) => {
    const gateway = await uploadGateway(t)
    const client = await gateway.upload()
    const drained = drainServer(gateway.draining, 200)
    const answer = await client.end()
    assert.match(answer, /^HTTP\/1\.1 500 .*"internal_error"/s)
    assert.equal(await drained, false)
    assert.deepEqual(await gateway.ended(), [500, 'internal_error', 'failed'])
  })

  it('is served when the gateway stops and it comes to its end in time', async (t) => {
    const gateway = await uploadGateway(t)
    const client = await gateway.upload(10_000)
    const drained = drainServer(gateway.draining, 20_000)
    await until(() => !gateway.server.listening)
    client.socket.write('x'.repeat(5000))
    assert.match(await client.end(), /^HTTP\/1\.1 200 /)
    assert.equal(await drained, true)
    assert.deepEqual(await gateway.ended(), [200, undefined, 'completed'])
  })
})

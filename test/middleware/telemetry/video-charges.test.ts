import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { MemoryTaskStore } from '../../../lib/endpoints/video/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { VideoCharges } from '../../../lib/middleware/telemetry/index.ts'
import { created, intended, intentOf, NOON } from '../../contracts/task-samples.ts'
import { videoUpstreamFor } from '../../support/video-gateway.ts'
import { KEY, type ObservedGateway, startObserved } from './observed-gateway.ts'

const CHARGES = 'model_gateway_charges_total'

const ADMIN_TOKEN = 'admin-token-of-a-test'

async function start(t: TestContext) {
  const upstream = await videoUpstreamFor(t)
  const gateway = await startObserved(t, {
    adminToken: ADMIN_TOKEN,
    lines: [{ url: upstream.url, protocol: 'openai', models: { film: 'upstream-film' } }],
    config: {
      accounts: [{ id: 'acme', balance: '100' }],
      keys: [{ id: 'key_acme', account: 'acme', secret: KEY }],
      models: [{ id: 'film', kind: 'video', price: { perSecond: '0.10' } }],
    },
  })
  return { upstream, gateway }
}

async function makeVideo(gateway: ObservedGateway): Promise<string> {
  const response = await gateway.post('/v1/videos', { model: 'film', prompt: 'a cat', seconds: '4' })
  assert.equal(response.status, 200)
  return ((await response.json()) as { id: string }).id
}

const charged = async (gateway: ObservedGateway) =>
  (await gateway.scrape()).of(CHARGES).map(({ labels, value }) => [labels.gen_ai_request_model, value])

test('a video is among the charges from when it is seen to be done, once', async (t) => {
  const { upstream, gateway } = await start(t)
  const id = await makeVideo(gateway)
  assert.deepEqual(await charged(gateway), [])
  upstream.last.status = 'completed'
  for (let reads = 0; reads < 3; reads++) {
    const video = (await (await gateway.get(`/v1/videos/${id}`)).json()) as { status: string }
    assert.equal(video.status, 'completed')
  }
  assert.deepEqual(await charged(gateway), [['film', 0.4]])
})

test('so is one that no caller asks for, and none that failed', async (t) => {
  const { upstream, gateway } = await start(t)
  await makeVideo(gateway)
  upstream.last.status = 'failed'
  await makeVideo(gateway)
  upstream.last.status = 'completed'
  let told = await charged(gateway)
  while (told.length === 0) {
    await sleep(20)
    told = await charged(gateway)
  }
  assert.deepEqual(told, [['film', 0.4]])
  assert.equal(upstream.seen('GET').length > 0, true, 'the settler has asked')
})

test('so is one that its line says is done at once', async (t) => {
  const { upstream, gateway } = await start(t)
  upstream.script = ({ method }, res) => {
    if (method !== 'POST') return false
    const done = { id: 'up-1', object: 'video', created_at: 1, model: 'm', status: 'completed', seconds: '4' }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(done))
    return true
  }
  const id = await makeVideo(gateway)
  assert.deepEqual(await charged(gateway), [['film', 0.4]])
  await (await gateway.get(`/v1/videos/${id}`)).text()
  assert.deepEqual(await charged(gateway), [['film', 0.4]])
})

test('so is one that an operator says was made, once', async (t) => {
  const { gateway } = await start(t)
  const id = await makeVideo(gateway)
  const resolve = () =>
    gateway.post(
      `/admin/video-tasks/${id}/resolve`,
      { outcome: 'charged', amount: '0.25' },
      { authorization: `Bearer ${ADMIN_TOKEN}` },
    )
  assert.equal((await resolve()).status, 200)
  assert.equal((await resolve()).status, 409)
  assert.deepEqual(await charged(gateway), [['film', 0.25]])
})

test('nor is one that an operator has resolved before its line did', async () => {
  const accounts = [{ id: 'acme', balance: '100' }]
  const ledger = new MemoryLedger({ accounts, keys: [{ id: 'key_acme' }] })
  const noted: bigint[] = []
  const videos = new VideoCharges()
  videos.follow({}, (_model, amount) => noted.push(amount))
  const store = videos.watching(new MemoryTaskStore({ money: ledger.holds }))
  const { id } = await intended(store, intentOf({ account: 'acme', key: 'key_acme' }))
  await store.markUnresolved(id, NOON)
  const origin = { requestId: newRequestId(NOON), actor: 'Ada', at: NOON }
  await store.resolve(id, { outcome: 'charged', amount: 40n }, origin)
  await store.created(id, created(), NOON + 1)
  await store.created(id, created(), NOON + 2)
  assert.deepEqual(noted, [40n])
})

test('a store that throws at once is one that fails, and nothing else comes of it', async () => {
  const fault = new Error('not a promise')
  const fail = () => {
    throw fault
  }
  const videos = new VideoCharges()
  const store = videos.watching({ created: fail, observe: fail, resolve: fail, list: fail })
  assert.throws(() => store.list(), fault)
  assert.throws(() => store.created(), fault)
  // An unhandled rejection would end the test, and any process.
  await new Promise((resolve) => setImmediate(resolve))
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { chatBody, KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { CHAT, keyedGateway } from './keyed-gateway.ts'

it('a key counts for the endpoint, however the app lets its path be spelled', async (t) => {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  const gateway = await keyedGateway(t, { lines: [upstream.url] })
  const ask = (path: string) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'idempotency-key': 'k',
      },
      body: JSON.stringify(chatBody()),
    })
  const statuses: number[] = []
  for (const path of [CHAT, `${CHAT}/`, CHAT.toUpperCase(), `${CHAT}?again=1`]) {
    const got = await ask(path)
    await got.text()
    statuses.push(got.status)
  }
  assert.deepEqual(statuses, [200, 409, 409, 409])
  assert.equal(upstream.requests.length, 1)
})

it('a key is not for another integer, not even one that rounds to the same number', async (t) => {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  const gateway = await keyedGateway(t, { lines: [upstream.url] })
  const withSeed = (seed: string): string =>
    JSON.stringify({ ...chatBody(), seed: 0 }).replace('"seed":0', `"seed":${seed}`)
  const statuses: number[] = []
  for (const seed of ['1302345678901234561', '1302345678901234562', '1302345678901234561']) {
    const got = await gateway.post('k', withSeed(seed))
    await got.text()
    statuses.push(got.status)
  }
  assert.deepEqual(statuses, [200, 400, 409])
  assert.equal(upstream.requests.length, 1)
})

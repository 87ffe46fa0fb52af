import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { type Admission, bearer, guard } from './admission.ts'

let app: Admission
before(async () => {
  app = await guard({
    keys: memoryKeyDirectory({
      accounts: [{ id: 'acme' }],
      keys: [
        { id: 'one', account: 'acme', secret: 'sk-one' },
        { id: 'two', account: 'acme', secret: 'sk-two' },
      ],
    }),
  })
})
after(() => app.close())

const UPGRADE = { connection: 'upgrade', upgrade: 'websocket' }
const KEY = 'openai-insecure-api-key.'

/** Asks with headers that `fetch` does not send. Answers the status and the key that was admitted. */
function ask(headers: Record<string, string>): Promise<[status: number | undefined, key: unknown]> {
  return new Promise((resolve, reject) => {
    const req = request(`${app.url}/v1/realtime`, { headers }, async (res) => {
      const text = (await res.toArray()).join('')
      resolve([res.statusCode, JSON.parse(text).key])
    })
    req.on('error', reject)
    req.end()
  })
}

describe('the key of a browser’s WebSocket', () => {
  it('is the subprotocol that carries one, wherever it stands among others', async () => {
    for (const offered of [`${KEY}sk-one`, `realtime, ${KEY}sk-one`, `${KEY}sk-one,realtime`])
      assert.deepEqual(await ask({ ...UPGRADE, 'sec-websocket-protocol': offered }), [200, 'one'], offered)
  })

  it('counts only in a handshake', async () => {
    const [status] = await ask({ 'sec-websocket-protocol': `${KEY}sk-one` })
    assert.equal(status, 401)
  })

  it('must not differ from another that the handshake carries', async () => {
    const offered = { ...UPGRADE, 'sec-websocket-protocol': `${KEY}sk-one` }
    assert.deepEqual(await ask({ ...offered, ...bearer('sk-one') }), [200, 'one'])
    assert.equal((await ask({ ...offered, ...bearer('sk-two') }))[0], 401)
    const two = `${KEY}sk-one, ${KEY}sk-two`
    assert.equal((await ask({ ...UPGRADE, 'sec-websocket-protocol': two }))[0], 401)
  })

  it('is missing where no subprotocol carries one', async () => {
    for (const offered of ['realtime', KEY, 'sk-one'])
      assert.equal((await ask({ ...UPGRADE, 'sec-websocket-protocol': offered }))[0], 401, offered)
  })
})

import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { DEMO_MODEL } from '../../../examples/gateway/demo-models/config.ts'
import { type CleanUp, cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type Environment,
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'

const ADMIN_TOKEN = 'admin-token-of-the-tests'
const OPERATORS = [
  '/admin/accounts',
  '/metrics',
  '/console',
  '/console/icon.svg',
  '/console/sign-in/provider',
]

async function start(t: CleanUp, env: Environment): Promise<{ gateway: GatewayProcess; admin: string }> {
  const { path: folder, remove } = await temporaryFolder()
  const gateway = await startGatewayProcess({
    ADMIN_TOKEN,
    ADMIN_PORT: '0',
    DATABASE_URL: `sqlite:${folder}/gateway.db`,
    SHUTDOWN_NOTICE_MS: '300',
    ...env,
  })
  t.after(() => gateway.stop().then(remove))
  const [, admin = ''] = /^The console, \/admin and \/metrics are at (http:\S+)$/m.exec(gateway.stdout) ?? []
  assert.match(admin, /^http:/)
  return { gateway, admin }
}

const get = (url: string, token = ADMIN_TOKEN) =>
  fetch(url, { headers: { authorization: `Bearer ${token}` } })

async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { error: { code: string } }).error.code
}

for (const workers of [undefined, '2']) {
  /** In the order of the file: the last drains the gateway. */
  describe(`ADMIN_PORT, ${workers ?? 'no'} workers`, () => {
    let gateway: GatewayProcess
    let admin: string
    const cleanUp = cleaningUp()
    before(async () => {
      ;({ gateway, admin } = await start(cleanUp, { WORKERS: workers }))
    })

    it('takes the pages of operators from the callers, and serves no models', async () => {
      for (const path of OPERATORS) {
        const there = await get(gateway.url + path)
        assert.deepEqual([there.status, await codeOf(there)], [404, 'not_found'], path)
        const here = await get(admin + path)
        assert.equal(here.status, 200, path)
        await here.arrayBuffer()
      }
      for (const path of ['/healthz', '/readyz', '/openapi.json']) {
        for (const url of [gateway.url, admin]) assert.equal((await fetch(url + path)).status, 200)
      }
      assert.equal((await post(gateway.url, chat(DEMO_MODEL, 'Hello!'))).status, 200)
      assert.equal((await post(admin, chat(DEMO_MODEL, 'Hello!'))).status, 404)
    })

    it('serves what the console shows to the holder of a key, and to no other caller', async () => {
      const called = await post(gateway.url, chat(DEMO_MODEL, 'Hello!'))
      await called.arrayBuffer()
      for (const path of ['/v1/calls', '/v1/account', '/v1/models', '/v1/tickets']) {
        assert.notEqual((await get(admin + path, 'sk-demo')).status, 401, path)
        assert.equal((await get(admin + path, 'sk-wrong')).status, 401, path)
      }
      assert.equal((await get(`${admin}/v1/account`, 'sk-demo')).status, 200)
    })

    it('drains with the callers: not ready, then closed, and what it has begun ends', async () => {
      const streamed = await post(gateway.url, chat(DEMO_MODEL, 'Hello!', { stream: true }))
      gateway.kill('SIGTERM')
      const ready = async (url: string): Promise<number> =>
        fetch(`${url}/readyz`).then(
          (response) => response.status,
          () => 0,
        )
      for (const url of [admin, gateway.url]) {
        let status = 200
        while (status === 200) status = await ready(url)
        assert.ok(status === 503 || status === 0)
      }
      assert.match(await streamed.text(), /\[DONE\]/)
      assert.equal((await gateway.exited).code, 0)
      assert.equal(await ready(admin), 0)
    })
  })
}

describe('a setting of ADMIN_PORT', () => {
  for (const [env, fault] of [
    [{ ADMIN_PORT: '70000' }, 'ADMIN_PORT: "70000" is not a port number'],
    [{ ADMIN_PORT: '8788', PORT: '8788' }, 'ADMIN_PORT: must be another port than PORT'],
    [{ ADMIN_HOST: '127.0.0.1' }, 'ADMIN_HOST: is used with ADMIN_PORT only'],
  ] as const) {
    it(`that is wrong is named: ${fault}`, async () => {
      await assert.rejects(startGatewayProcess(env), (error: Error) => error.message.includes(fault))
    })
  }
})

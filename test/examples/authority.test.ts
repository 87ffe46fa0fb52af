import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { temporaryDatabase } from '../stores/sql/support/temporary-database.ts'
import { createGateway } from '../support/any-config.ts'
import { recordingLogger, serveApp } from '../support/app-server.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { until, untilAsync } from '../support/until.ts'

const TOKEN = 'an-admin-token-of-some-length'
const BASE = {
  models: [{ id: 'chat', kind: 'chat' }],
  lines: [
    { id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { chat: 'up' } },
  ],
}
const FIRST = {
  ...BASE,
  accounts: [{ id: 'acme' }, { id: 'beside' }],
  keys: [
    { id: 'leaked', account: 'acme', secret: 'sk-leaked' },
    { id: 'rotated', account: 'acme', secret: 'sk-former' },
    { id: 'beside', account: 'beside', secret: 'sk-beside' },
  ],
}
/** Without the leaked key, and with another secret of the other. */
const NEXT = {
  ...FIRST,
  keys: [{ id: 'rotated', account: 'acme', secret: 'sk-new', limits: { rpm: 50 } }, FIRST.keys[2]],
}

/** Ends the gateways before their database goes. */
const cleanUp = cleaningUp(afterEach)

async function databaseUrl(): Promise<string> {
  const { url, remove } = await temporaryDatabase()
  cleanUp.after(remove)
  return url
}

async function gatewayOf(databaseUrl: string, config: object) {
  const logger = recordingLogger()
  const gateway = await createGateway(config, { databaseUrl, adminToken: TOKEN, logger, env: {} })
  const server = await serveApp((app) => void app.use(gateway))
  cleanUp.after(() => server.close().then(() => gateway.close()))
  const ask = async (path: string, secret = TOKEN, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const response = await fetch(server.url + path, { ...init, headers })
    return { status: response.status, body: (await response.json()) as { data: object[] } }
  }
  const told = () => logger.lines.filter(({ message }) => message === 'config and database differ')
  return { gateway, ask, told, logger }
}

const statusFor = async ({ ask }: Awaited<ReturnType<typeof gatewayOf>>, secret: string) =>
  (await ask('/v1/models', secret)).status

describe('the authority of the config', () => {
  it('revokes at reload what the config no longer names, in every process', async () => {
    const url = await databaseUrl()
    const one = await gatewayOf(url, { ...FIRST, authority: 'config' })
    const other = await gatewayOf(url, { ...FIRST, authority: 'config' })
    for (const secret of ['sk-leaked', 'sk-former', 'sk-beside'])
      assert.equal(await statusFor(other, secret), 200)
    const next = { ...NEXT, authority: 'config' }
    await Promise.all([one.gateway.reload(next), other.gateway.reload(next)])
    for (const gateway of [one, other]) {
      await untilAsync(async () => (await statusFor(gateway, 'sk-leaked')) === 403, 'the revocation')
      await untilAsync(
        async () => (await statusFor(gateway, 'sk-former')) === 401,
        'the end of the former secret',
      )
      assert.equal(await statusFor(gateway, 'sk-new'), 200)
      assert.equal(await statusFor(gateway, 'sk-beside'), 200)
      assert.deepEqual((await gateway.ask('/admin/drift')).body.data, [])
      assert.deepEqual(gateway.told(), [])
    }
    // Each is made once. Which process makes it, and so whose request comes first, is chance.
    const changes = (await one.ask('/admin/changes?subject=rotated')).body.data
    assert.deepEqual(
      changes.map((change) => `${Reflect.get(change, 'actor')} ${Reflect.get(change, 'action')}`).sort(),
      ['config key.changed', 'config key.rotated'],
    )
    const enable = { method: 'PATCH', body: '{"enabled":true}' }
    for (const [path, init] of [
      ['/admin/keys/leaked', enable],
      ['/admin/keys/rotated', enable],
      ['/admin/keys/rotated/rotate', { method: 'POST', body: '{}' }],
      ['/admin/keys/rotated', { method: 'DELETE' }],
      ['/admin/accounts/acme', { method: 'PATCH', body: '{"name":"Acme"}' }],
    ] as const)
      assert.equal((await one.ask(path, TOKEN, init)).status, 409, path)
    assert.equal(await statusFor(one, 'sk-leaked'), 403)
    const own = { method: 'POST', body: '{"id":"own","account":"acme"}' }
    assert.equal((await one.ask('/admin/keys', TOKEN, own)).status, 201)
    assert.equal((await one.ask('/admin/keys/own', TOKEN, enable)).status, 200)
    assert.deepEqual((await one.ask('/admin/drift')).body.data, [])
  })

  it('logs no failure of a reload that the end of the gateway cuts short, or that follows it', async () => {
    const url = await databaseUrl()
    const { gateway, logger } = await gatewayOf(url, { ...FIRST, authority: 'config' })
    const accounts = Array.from({ length: 300 }, (_, i) => ({ id: `acme-${i}` }))
    const next = { ...FIRST, authority: 'config', accounts: [...FIRST.accounts, ...accounts] }
    const reloads = [gateway.reload(next), gateway.reload(FIRST)]
    await gateway.close()
    await Promise.all([...reloads, gateway.reload(next)])
    assert.deepEqual(
      logger.lines.filter(({ level }) => level === 'error'),
      [],
    )
  })

  it('logs each difference once in memory, however often the config was read', async () => {
    const one = await gatewayOf('memory:', { ...FIRST, authority: 'config' })
    for (let i = 0; i < 3; i++) await one.gateway.reload({ ...FIRST, authority: 'config' })
    await one.gateway.reload({ ...NEXT, keys: [NEXT.keys[1]] })
    const rows = (await one.ask('/admin/drift')).body.data
    assert.deepEqual(
      rows.map((row) => Reflect.get(row, 'id')),
      ['leaked', 'rotated'],
    )
  })

  it('is the database’s by default: differences are logged, and nothing changes', async () => {
    const url = await databaseUrl()
    const one = await gatewayOf(url, FIRST)
    await one.ask('/admin/keys/beside', TOKEN, { method: 'DELETE' })
    await one.gateway.reload(NEXT)
    const differences = [
      { kind: 'key', id: 'beside', difference: 'missing', members: [] },
      { kind: 'key', id: 'leaked', difference: 'not_in_config', members: [] },
      { kind: 'key', id: 'rotated', difference: 'changed', members: ['limits.rpm', 'secret'] },
    ]
    const rows = differences.map((difference) => ({ object: 'difference', ...difference }))
    assert.deepEqual((await one.ask('/admin/drift')).body.data, rows)
    const fields = () => one.told().map((line) => line.fields)
    // The comparison at the start may have reported the deletion before.
    assert.deepEqual(fields().slice(-differences.length), differences)
    assert.doesNotMatch(JSON.stringify(one.logger.lines), /sk-/)
    assert.equal(await statusFor(one, 'sk-leaked'), 200)
    assert.equal(await statusFor(one, 'sk-new'), 401)
    const enable = { method: 'PATCH', body: '{"enabled":true}' }
    assert.equal((await one.ask('/admin/keys/leaked', TOKEN, enable)).status, 200)

    // As does a start.
    const two = await gatewayOf(url, NEXT)
    await until(() => two.told().length === 3, 'the warnings at start')
    const page = (await two.ask('/admin/drift?limit=2')).body as unknown as {
      data: object[]
      next_cursor: string
    }
    const rest = (await two.ask(`/admin/drift?limit=2&cursor=${page.next_cursor}`)).body
    assert.deepEqual([...page.data, ...rest.data], rows)
  })
})

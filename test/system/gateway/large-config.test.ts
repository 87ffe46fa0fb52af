import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { chat, lookUp, post } from '../../support/gateway-process.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until, untilAsync } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { askedChat, keepAliveLoad } from './keep-alive-load.ts'

/** The file has more than a megabyte then. */
const KEYS = 12_000
const ACCOUNTS = Array.from({ length: 3000 }, (_, i) => ({ id: `account-${i}`, balance: '10' }))

const keysTo = (count: number) => [
  { id: 'key', account: 'account-0', secret: 'sk-demo' },
  ...Array.from({ length: count }, (_, i) => ({
    id: `key-${i}`,
    account: `account-${i % ACCOUNTS.length}`,
    secret: `sk-secret-of-a-key-${i}`,
  })),
]
const MODEL = { id: 'chat-small', kind: 'chat', maxOutputTokens: 100 }
const members = (count: number, perRequest: string) => ({
  accounts: ACCOUNTS,
  keys: keysTo(count),
  models: [{ ...MODEL, price: { perRequest } }],
})

const authorization = (i: number) => ({ authorization: `Bearer sk-secret-of-a-key-${i}` })

/** Starts it, and changes a price and a key while calls run. */
async function reloadUnderLoad(t: TestContext, env: Record<string, string> = {}): Promise<FileGateway> {
  const server = await startFileGateway(t, env, members(KEYS, '0.001'))
  const { gateway } = server
  const last = await post(gateway.url, chat(), authorization(KEYS - 1))
  assert.equal(last.status, 200, await last.text())
  const load = keepAliveLoad(t, gateway.url, [askedChat(), askedChat('chat-small', true)])
  await load.more(10)
  await server.write({ ...server.config, ...members(KEYS + 1, '0.002') })
  await until(() => gateway.stdout.includes('"msg":"config reloaded"'), 'the reload', 60_000)
  await load.more(10)
  await load.stop()
  assert.deepEqual(load.failures, [])
  return server
}

async function chargeOf({ gateway }: FileGateway, key: number): Promise<unknown> {
  const answer = await post(gateway.url, chat(), authorization(key))
  assert.equal(answer.status, 200, await answer.text())
  const secret = `sk-secret-of-a-key-${key}`
  const entry = await lookUp(gateway.url, answer.headers.get('x-request-id'), secret)
  return entry.billing?.charged
}

describe('a config of many accounts and keys', () => {
  it('is reloaded without a refused call: its new price and its new key count, and nothing else has changed', async (t) => {
    const server = await reloadUnderLoad(t)
    assert.equal(await chargeOf(server, 5), '0.002')
    assert.equal(await chargeOf(server, KEYS), '0.002')
    assert.deepEqual((await server.ledger()).violations, [])
    let path: string | undefined = '/drift?limit=100'
    while (path !== undefined) {
      const page: { data: unknown[]; next_cursor: string | null } = await server.admin(path)
      assert.deepEqual(page.data, [])
      path = page.next_cursor === null ? undefined : `/drift?limit=100&cursor=${page.next_cursor}`
    }
  })

  it('that is broken changes nothing, and its fault names the key', async (t) => {
    const server = await startFileGateway(t, {}, members(KEYS, '0.001'))
    const { gateway, config } = server
    const keys = [...keysTo(KEYS), { id: 'odd', account: 'nobody', secret: 'sk-odd' }]
    await server.write({ ...config, ...members(KEYS, '0.002'), keys })
    const isTold = () =>
      gateway.logged.some(({ fault }) => `${fault}`.startsWith(`keys[${KEYS + 1}].account: `))
    await until(isTold, 'the fault', 60_000)
    assert.equal(await chargeOf(server, 5), '0.001')
  })

  it('reaches each worker', async (t) => {
    const server = await reloadUnderLoad(t, { WORKERS: '2' })
    // Each takes over what the primary process has read, at its own time.
    let newInTurn = 0
    await untilAsync(async () => {
      newInTurn = (await chargeOf(server, 5)) === '0.002' ? newInTurn + 1 : 0
      return newInTurn === 12
    }, 'the new price in both')
    assert.deepEqual((await server.ledger()).violations, [])
  })

  it('is reloaded so with Postgres, too', { skip: WITHOUT_POSTGRES }, async (t) => {
    const postgres = await startPostgres()
    t.after(() => postgres.close())
    const server = await reloadUnderLoad(t, { DATABASE_URL: await postgres.createDatabase() })
    assert.equal(await chargeOf(server, KEYS), '0.002')
  })
})

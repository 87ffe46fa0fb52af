import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  post,
  runToExit,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

const TOKEN = 'admin-token-of-this-test'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let upstream: ScriptedUpstream
let postgres: PostgresServer | undefined
let gateway: GatewayProcess | undefined
const cleanUp = cleaningUp()
before(async () => {
  folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
})
cleanUp.after(() => postgres?.close())
afterEach(() => gateway?.stop())

async function start(env: Record<string, string>): Promise<GatewayProcess> {
  gateway = await startGatewayProcess(env)
  return gateway
}

let databases = 0
const sqliteUrl = () => `sqlite:${join(folder.path, `${databases++}.db`)}`

async function postgresUrl(): Promise<string> {
  postgres = await startPostgres()
  return postgres.url
}

/** A prepaid account with nothing on it, and a model that costs half a unit a call. */
async function configFile(): Promise<string> {
  const path = join(folder.path, 'config.json')
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }
  const config = {
    accounts: [{ id: 'acme', balance: '0' }],
    keys: [{ id: 'k', account: 'acme', secret: 'sk-1' }],
    models: [{ id: 'm', kind: 'chat', price: { perRequest: '0.50' } }],
    lines: [line],
  }
  await writeFile(path, JSON.stringify(config))
  return path
}

interface Books {
  readonly deposited: string
  readonly spent: string
  readonly balance: string
  readonly violations: readonly string[]
  readonly charges: number
}

async function ask(method: string, path: string, body?: object): Promise<{ status: number; body: Books }> {
  const response = await fetch(`${gateway?.url}/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await jsonOf<Books>(response) }
}

const call = () => post(gateway?.url ?? '', chat('m'), { authorization: 'Bearer sk-1' })

async function assertRefused(): Promise<void> {
  const asked = upstream.requests.length
  const refused = await call()
  assert.deepEqual([refused.status, (await envelopeOf(refused)).error.code], [402, 'insufficient_balance'])
  assert.equal(upstream.requests.length, asked, 'nothing reached the upstream')
}

async function assertAnswered(): Promise<void> {
  const answer = await call()
  assert.equal(answer.status, 200)
  await answer.arrayBuffer()
}

/** Calls until one is answered with a status; a change of an account takes some seconds to be seen. */
async function untilAnswered(status: number): Promise<void> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const answer = await call()
    await answer.arrayBuffer()
    if (answer.status === status) return
    assert.ok(performance.now() < deadline, `still answered with ${answer.status} after 10 s`)
    await sleep(100)
  }
}

describe('the admin API of the assembled gateway', () => {
  for (const [name, databaseUrl, skip] of [
    ['memory', () => 'memory:', false],
    ['SQLite', sqliteUrl, false],
    ['Postgres', postgresUrl, WITHOUT_POSTGRES],
  ] as const) {
    it(`a deposit can be spent, and no more: ${name}`, { skip }, async () => {
      await start({
        ADMIN_TOKEN: TOKEN,
        DATABASE_URL: await databaseUrl(),
        GATEWAY_CONFIG: await configFile(),
      })
      await assertRefused()
      const deposit = { amount: '1.25', reference: 'inv-1' }
      assert.equal((await ask('POST', '/accounts/acme/deposits', deposit)).status, 201)
      assert.equal((await ask('GET', '/accounts/acme')).body.balance, '1.25')

      await assertAnswered()
      assert.equal((await ask('GET', '/accounts/acme')).body.balance, '0.75')
      await assertAnswered()
      await assertRefused()
      const { deposited, spent, balance } = (await ask('GET', '/accounts/acme')).body
      assert.deepEqual({ deposited, spent, balance }, { deposited: '1.25', spent: '1', balance: '0.25' })
      const books = (await ask('GET', '/ledger/check')).body
      assert.deepEqual([books.violations, books.charges, books.deposited, books.spent], [[], 2, '1.25', '1'])
    })
  }

  it('an account made postpaid is served without a balance, and no more once it is prepaid again', async () => {
    await start({ ADMIN_TOKEN: TOKEN, GATEWAY_CONFIG: await configFile() })
    await assertRefused()
    await ask('PATCH', '/accounts/acme', { prepaid: false })
    await untilAnswered(200)
    const { spent, balance } = (await ask('GET', '/accounts/acme')).body
    assert.deepEqual([spent, balance], ['0.5', '-0.5'])
    await ask('PATCH', '/accounts/acme', { prepaid: true })
    await untilAnswered(402)
    assert.deepEqual((await ask('GET', '/ledger/check')).body.violations, [])
  })

  it('keeps what was deposited over a restart', async () => {
    const env = {
      ADMIN_TOKEN: TOKEN,
      DATABASE_URL: sqliteUrl(),
      GATEWAY_CONFIG: await configFile(),
    }
    const first = await start(env)
    await ask('POST', '/accounts/acme/deposits', { amount: '10', reference: 'inv-1' })
    first.kill('SIGTERM')
    assert.equal((await first.exited).code, 0)
    await start(env)
    assert.equal((await ask('GET', '/accounts/acme')).body.balance, '10')
    const again = await ask('POST', '/accounts/acme/deposits', { amount: '10', reference: 'inv-1' })
    assert.equal(again.status, 200)
    assert.equal((await ask('GET', '/accounts/acme')).body.balance, '10')
  })

  it('shows nothing without the token, and the token opens nothing else', async () => {
    const { url, stdout } = await start({ ADMIN_TOKEN: TOKEN })
    for (const [authorization, code] of [
      ['', 'missing_credential'],
      ['Bearer sk-demo', 'invalid_credential'],
    ] as const) {
      for (const path of ['/admin/accounts', '/admin/nothing']) {
        const response = await fetch(url + path, { headers: authorization ? { authorization } : {} })
        assert.deepEqual([response.status, (await envelopeOf(response)).error.code], [401, code])
      }
    }
    const answer = await post(url, chat(), { authorization: `Bearer ${TOKEN}` })
    assert.equal((await envelopeOf(answer)).error.code, 'invalid_credential')
    assert.ok(!stdout.includes(TOKEN))
  })

  for (const [name, env] of [
    ['no ADMIN_TOKEN', {}],
    ['an empty one', { ADMIN_TOKEN: '' }],
  ] as const) {
    it(`is not there with ${name}`, async () => {
      const { url } = await start(env)
      for (const authorization of ['', 'Bearer ', `Bearer ${TOKEN}`, 'Bearer undefined']) {
        const response = await fetch(`${url}/admin/accounts`, { headers: { authorization } })
        assert.deepEqual([response.status, (await envelopeOf(response)).error.code], [404, 'not_found'])
      }
    })
  }

  it('does not start with a token that no header can carry, and does not print it', async () => {
    const { code, stderr } = await runToExit({ ADMIN_TOKEN: 'hunter2 hunter2' })
    assert.equal(code, 1)
    assert.match(stderr, /^ADMIN_TOKEN: [^\n]+\n$/)
    assert.doesNotMatch(stderr, /hunter2/)
  })
})

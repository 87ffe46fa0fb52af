import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { machine } from '../../../lib/core/timing/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { booksOf, shutDown } from './paid-gateways.ts'

const LOCKED_MS = 5000
/** Creates of the locked account that are under way at a time. */
const FLOOD = 40
const SILENT_MS = 8000
/** On a busy machine, what the gateway waits for may take so many times as long. */
const BUSY_TIMES = 8
/** Within this calls have an answer, and operators, whose operations have more time. */
const CALL_MS = 3000
const OPERATOR_MS = 8000
/** How long a call of another account waits at least before it is refused, and how many a busy machine may make so late. */
const PATIENCE_MS = 900
const LATE_SHARE = 0.05
const ADMIN_TOKEN = 'admin-token-0123456789'

interface Answered {
  readonly status: number
  readonly code: string | undefined
  readonly ms: number
}

async function again(during: Promise<unknown>, act: () => Promise<Answered>, pauseMs = 0) {
  const all: Answered[] = []
  let over = false
  void during.then(() => {
    over = true
  })
  while (!over) {
    all.push(await act())
    await sleep(pauseMs)
  }
  return all
}

const worst = (all: readonly Answered[]) => Math.max(...all.map(({ ms }) => ms))
/** Returns the most that nine of ten answers take: a busy machine makes single ones late, whatever is locked. */
const nearlyAll = (all: readonly Answered[]) =>
  all.map(({ ms }) => ms).sort((one, other) => one - other)[Math.floor(all.length * 0.9)] ??
  Number.POSITIVE_INFINITY

/** Watches the machine. Returns how many times as long as on one that is not busy the gateway may have waited. */
function watchLimits(t: TestContext): () => number {
  let isBusy = false
  const timer = setInterval(() => {
    isBusy ||= machine.limit(1) > 1
  }, 50)
  t.after(() => clearInterval(timer))
  return () => (isBusy ? BUSY_TIMES : 1)
}

describe('an account whose rows another connection has locked', { skip: WITHOUT_POSTGRES }, () => {
  let postgres: PostgresServer
  const cleanUp = cleaningUp()
  before(async () => {
    postgres = await startPostgres()
    cleanUp.after(() => {
      postgres.thaw()
      return postgres.close()
    })
  })

  const accounts = ['locked', 'steady']

  /** A gateway with two tenants, and what they and their operator do. */
  async function world(t: TestContext) {
    const url = await postgres.createDatabase()
    const folder = await temporaryFolder()
    t.after(folder.remove)
    let made = 0
    const upstream = await startUpstream((res, { path }) => {
      if (!path.startsWith('/v1/videos')) return chatAnswer(res)
      answerJson(res, 200, {
        id: `v-${++made}`,
        object: 'video',
        status: 'queued',
        progress: 0,
        seconds: '4',
      })
    })
    t.after(() => upstream.close())
    const config = join(folder.path, 'config.json')
    await writeFile(
      config,
      JSON.stringify({
        accounts: accounts.map((id) => ({ id, balance: '100000' })),
        keys: accounts.map((id) => ({ id, account: id, secret: `sk-${id}`, quota: '50000' })),
        models: [
          { id: 'chat', kind: 'chat', price: { perRequest: '0.01' } },
          { id: 'video', kind: 'video', price: { perSecond: '0.01' } },
        ],
        lines: [
          {
            ...{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` },
            models: { chat: 'c', video: 'v' },
          },
        ],
      }),
    )
    const env = { DATABASE_URL: url, GATEWAY_CONFIG: config, ADMIN_TOKEN, LOG_LEVEL: 'warn' }
    const gateway = await startGatewayProcess(env)
    t.after(() => gateway.stop())

    async function post(path: string, secret: string, body: object): Promise<Answered> {
      const startedAt = performance.now()
      const answer = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const code = /"code":\s*"(\w+)"/.exec(await answer.text())?.[1]
      return { status: answer.status, code, ms: performance.now() - startedAt }
    }
    const create = (account: string) =>
      post('/v1/videos', `sk-${account}`, { model: 'video', prompt: 'waves', seconds: '4' })
    const ask = (account: string) =>
      post('/v1/chat/completions', `sk-${account}`, {
        model: 'chat',
        messages: [{ role: 'user', content: 'hi' }],
      })
    let deposits = 0
    const deposit = (account: string) =>
      post(`/admin/accounts/${account}/deposits`, ADMIN_TOKEN, {
        amount: '1',
        reference: `deposit-${++deposits}`,
      })
    return { gateway, url, create, ask, deposit }
  }

  it('waits with its videos and deposits alone, and each of them has an answer in time', async (t) => {
    const heldUp = watchHeldUp(t)
    const { gateway, url, create, ask, deposit } = await world(t)
    for (const account of accounts)
      for (const act of [create, ask, deposit]) {
        const { status, code } = await act(account)
        assert.ok(status < 300, `${status} ${code}`)
      }
    // As many callers where nothing is locked: what they take of a busy machine is no matter of the lock.
    const alone = sleep(1500)
    const [videosAlone, asksAlone, ...floodAlone] = await Promise.all([
      again(alone, () => create('steady'), 20),
      again(alone, () => ask('steady'), 20),
      ...Array.from({ length: FLOOD }, () => again(alone, () => create('locked'), 500)),
    ])
    const ownAlone = worst(floodAlone.flat())

    const operator = new Client({ connectionString: url })
    await operator.connect()
    t.after(() => operator.end())
    await operator.query('begin')
    await operator.query("select 1 from wallets where id in ('account:locked', 'key:locked') for update")
    const locked = sleep(LOCKED_MS)
    const [videos, asks, ofSteady, ofLocked, ...flood] = await Promise.all([
      again(locked, () => create('steady'), 20),
      again(locked, () => ask('steady'), 20),
      again(locked, () => deposit('steady'), 50),
      again(locked, () => deposit('locked')),
      ...Array.from({ length: FLOOD }, () => again(locked, () => create('locked'))),
    ])
    await operator.query('rollback')
    const own = flood.flat()
    t.diagnostic(
      `alone ${worst(videosAlone).toFixed()} and ${worst(asksAlone).toFixed()} ms, its own ${ownAlone.toFixed()} ms; beside ${worst(videos).toFixed()}, ${worst(asks).toFixed()}, deposits ${worst(ofSteady).toFixed()} ms; ${own.length} of its own, ${worst(own).toFixed()} ms; ${ofLocked.length} deposits, ${worst(ofLocked).toFixed()} ms`,
    )
    for (const all of [videos, asks, ofSteady]) {
      const faults = all.filter(({ status }) => status >= 300)
      const late = faults.filter(({ code, ms }) => code === 'billing_unavailable' && ms > PATIENCE_MS)
      assert.deepEqual(
        faults.filter((each) => !late.includes(each)),
        [],
      )
      assert.ok(late.length <= LATE_SHARE * all.length, `${late.length} of ${all.length} refused`)
    }
    const allowed = 500 + 2 * heldUp()
    assert.ok(nearlyAll(videos) < 2 * nearlyAll(videosAlone) + allowed)
    assert.ok(nearlyAll(asks) < 2 * nearlyAll(asksAlone) + allowed)
    assert.ok(worst(videos) < 2 * worst(videosAlone) + 2000 + allowed)
    assert.ok(worst(asks) < 2 * worst(asksAlone) + 2000 + allowed)
    const ownAllowed = 2 * (ownAlone + heldUp())
    for (const { status, code, ms } of own) {
      assert.deepEqual([status, code], [503, 'billing_unavailable'])
      assert.ok(ms < 2000 + ownAllowed, `${ms} ms`)
    }
    for (const { status, ms } of ofLocked) {
      assert.ok(status >= 500, `${status}`)
      assert.ok(ms < 5000 + ownAllowed, `${ms} ms`)
    }
    for (const act of [create, deposit]) assert.ok((await act('locked')).status < 300)
    await shutDown([gateway])
    assert.deepEqual((await booksOf(url)).violations, [])
  })

  it('has its answers in time, as all have, where Postgres accepts connections and says nothing', async (t) => {
    const heldUp = watchHeldUp(t)
    const times = watchLimits(t)
    const { gateway, url, create, ask, deposit } = await world(t)
    for (const account of accounts)
      for (const act of [create, ask, deposit]) assert.ok((await act(account)).status < 300)
    postgres.freeze()
    const silent = sleep(SILENT_MS)
    const each = (act: (account: string) => Promise<Answered>) =>
      Promise.all(accounts.map((account) => again(silent, () => act(account), 50)))
    const [creates, asks, deposits] = await Promise.all([each(create), each(ask), each(deposit)])
    for (const [what, all, bound] of [
      ['creates', creates.flat(), CALL_MS],
      ['calls', asks.flat(), CALL_MS],
      ['deposits', deposits.flat(), OPERATOR_MS],
    ] as const) {
      t.diagnostic(`${all.length} ${what}, the slowest ${worst(all).toFixed()} ms`)
      const most = times() * bound + 2 * heldUp()
      assert.ok(worst(all) < most, `${what}: ${worst(all)} ms`)
      for (const { status } of all) assert.ok(status >= 500 || status < 300, `${what}: ${status}`)
    }
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200)
    postgres.thaw()
    for (const account of accounts)
      for (const act of [create, ask, deposit])
        await untilAsync(async () => (await act(account)).status < 300, 'an answer', 30_000)
    await shutDown([gateway])
    assert.deepEqual((await booksOf(url)).violations, [])
  })
})

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  type GatewayProcess,
  lookUp,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

const ADMIN_TOKEN = 'admin-token-0123456789'
/** The cost of each call, whatever it asks for. */
const COST = 0.01
/** How long the tenant beside waits behind each call. */
const BESIDE_EVERY_MS = 50
/** How long a caller waits for what a lease holds: some wait until the lease of a killed process ends. */
const RETRIED_MS = 500
/** More than a lease that nobody renews is kept; a machine that is short of time watches it for longer. */
const SWEPT_WITHIN_MS = 200_000

type Answered = Readonly<Record<'id' | 'message', string>> & { status: number; code: string | undefined }

const SCOPES = {
  account: { scope: {}, code: 'insufficient_balance', named: /^The budget of the account / },
  key: { scope: { key: 'k-key' }, code: 'key_quota_exhausted', named: /^The budget of the key / },
  user: { scope: { user: 'ann' }, code: 'key_quota_exhausted', named: /^The budget of the user "ann" / },
  tag: {
    scope: { tag: 'team=search' },
    code: 'key_quota_exhausted',
    named: /^The budget of the tag "team=search" /,
  },
} as const
type ScopeName = keyof typeof SCOPES
const NAMES = Object.keys(SCOPES) as ScopeName[]

describe('a hard budget over two gateway processes', { skip: WITHOUT_POSTGRES, timeout: 500_000 }, () => {
  let postgres: PostgresServer
  const cleanUp = cleaningUp()
  before(async () => {
    postgres = await startPostgres()
    cleanUp.after(() => postgres.close())
  })

  /** Two processes, an account for each scope, and one beside them. */
  async function world(t: TestContext) {
    const folder = await temporaryFolder()
    t.after(folder.remove)
    let made = 0
    const upstream = await startUpstream(async (res, { path }) => {
      await sleep(10)
      if (!path.startsWith('/v1/videos')) return chatAnswer(res)
      answerJson(res, 200, { id: `v-${++made}`, object: 'video', status: 'queued', seconds: '4' })
    })
    t.after(() => upstream.close())
    const path = join(folder.path, 'config.json')
    const accounts = [...NAMES, 'beside']
    const line = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` }
    const config = {
      accounts: accounts.map((id) => ({ id, balance: '100000' })),
      keys: accounts.map((id) => ({ id: `k-${id}`, account: id, secret: `sk-${id}` })),
      models: [
        { id: 'chat', kind: 'chat', price: { perRequest: '0.01' } },
        { id: 'video', kind: 'video', price: { perSecond: '0.0025' } },
      ],
      lines: [{ ...line, models: { chat: 'c', video: 'v' } }],
      passThrough: [{ path: '/v1/bytes', lines: ['l'], price: { perRequest: '0.01' } }],
    }
    await writeFile(path, JSON.stringify(config))
    const url = await postgres.createDatabase()
    const start = async () => {
      const env = { DATABASE_URL: url, GATEWAY_CONFIG: path, ADMIN_TOKEN, LOG_LEVEL: 'warn' }
      const gateway = await startGatewayProcess(env)
      t.after(() => gateway.stop())
      return gateway
    }
    const gateways = [await start(), await start()] as const

    async function admin<T>(method: string, route: string, body?: object): Promise<T> {
      const response = await fetch(`${gateways[0].url}/admin${route}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      assert.ok(response.ok, `${method} ${route}: ${response.status}`)
      return (await response.json()) as T
    }
    const budget = async (name: ScopeName, amount: string, period = 'month') => {
      const scope = { account: name, ...SCOPES[name].scope }
      const timezone = 'Asia/Tokyo'
      return admin<{ id: string; resets_at: string }>('POST', '/budgets', { scope, amount, period, timezone })
    }
    const spentOf = async (id: string) =>
      Number((await admin<{ spent: string }>('GET', `/budgets/${id}`)).spent)
    // They take effect in every process within 5 s.
    const known = () => sleep(5000)
    const assertSound = async () =>
      assert.deepEqual((await admin<{ violations: string[] }>('GET', '/ledger/check')).violations, [])

    /** As clients do: on a machine that is short of time the ledger may be late. */
    async function send(
      gateway: GatewayProcess,
      route: string,
      account: string,
      body: object,
    ): Promise<Answered | undefined> {
      for (let tries = 1; ; tries++) {
        const answer = await sendOnce(gateway, route, account, body)
        if (answer?.code !== 'billing_unavailable' || tries === 5) return answer
        await sleep(200 * tries)
      }
    }
    async function sendOnce(
      { url: at }: GatewayProcess,
      route: string,
      account: string,
      body: object,
    ): Promise<Answered | undefined> {
      const headers = {
        authorization: `Bearer sk-${account}`,
        'content-type': 'application/json',
        'x-gateway-tags': 'team=search',
      }
      try {
        const answer = await fetch(at + route, { method: 'POST', headers, body: JSON.stringify(body) })
        const text = await answer.text()
        const error = answer.ok ? undefined : JSON.parse(text).error
        const id = String(answer.headers.get('x-request-id'))
        return { id, status: answer.status, code: error?.code, message: String(error?.message) }
      } catch {
        return undefined
      }
    }
    const messages = [{ role: 'user', content: 'hi' }]
    const chat = (gateway: GatewayProcess, account: string) =>
      send(gateway, '/v1/chat/completions', account, { model: 'chat', messages, user: 'ann' })
    const bytes = (gateway: GatewayProcess, account: string) => send(gateway, '/v1/bytes', account, {})
    const video = (gateway: GatewayProcess, account: string) =>
      send(gateway, '/v1/videos', account, { model: 'video', prompt: 'waves', seconds: '4' })
    const refusedBy = async (account: string, { id }: Answered) =>
      (await lookUp(gateways[0].url, id, `sk-${account}`)).billing?.budget
    return { gateways, budget, spentOf, known, assertSound, chat, bytes, video, refusedBy }
  }

  /** Calls until a budget refuses for good, or the process is gone; returns how many were served. */
  async function spend(
    call: () => Promise<Answered | undefined>,
  ): Promise<{ served: number; last?: Answered }> {
    let served = 0
    for (;;) {
      const answer = await call()
      if (!answer) return { served }
      if (answer.status === 200) served++
      else if (answer.code !== 'quota_lease_exhausted') return { served, last: answer }
      else await sleep(RETRIED_MS)
    }
  }

  /** The tenant beside, who calls all the time; returns what was refused. */
  function beside(t: TestContext, call: (i: number) => Promise<Answered | undefined>) {
    let over = false
    const faults: (Answered | undefined)[] = []
    let calls = 0
    t.after(() => {
      over = true
    })
    const done = (async () => {
      while (!over) {
        const answer = await call(calls++)
        if (answer?.status !== 200) faults.push(answer)
        // For minutes: what it calls for is that nothing is refused.
        await sleep(BESIDE_EVERY_MS)
      }
    })()
    return async () => {
      over = true
      await done
      assert.ok(calls > 10, `${calls} calls beside`)
      assert.deepEqual(faults, [])
    }
  }

  it('is spent to its end by both and never beyond, by any scope, chat and passed through', async (t) => {
    const { gateways, budget, spentOf, known, assertSound, chat, bytes, refusedBy } = await world(t)
    const budgets = await Promise.all(NAMES.map(async (name) => [name, await budget(name, '0.6')] as const))
    await known()
    const end = beside(t, (i) => chat(gateways[i % 2] as GatewayProcess, 'beside'))
    for (const [name, { id, resets_at }] of budgets) {
      // Which user a passed-through call is for is not known.
      const ways = name === 'user' ? [chat, chat] : [chat, bytes]
      const callers = gateways.flatMap((gateway) =>
        ways.flatMap((way) => [0, 1].map(() => spend(() => way(gateway, name)))),
      )
      const ends = await Promise.all(callers)
      const served = ends.reduce((sum, { served }) => sum + served, 0)
      assert.equal(served, 60, name)
      assert.equal(await spentOf(id), 0.6)
      for (const { last } of ends) {
        assert.ok(last)
        const { code, named } = SCOPES[name]
        assert.deepEqual([last.status, last.code], [402, code])
        assert.match(last.message, named)
        assert.ok(last.message.includes(resets_at), last.message)
        assert.equal(await refusedBy(name, last), id)
      }
    }
    await end()
    await assertSound()
  })

  it('holds for videos, which are refused as other calls are', async (t) => {
    const { gateways, budget, known, assertSound, video, refusedBy } = await world(t)
    for (const name of ['account', 'key'] as const) await budget(name, '0.02')
    const small = await budget('tag', '0.009')
    await known()
    const make = async (name: ScopeName) => {
      const answers = await Promise.all(
        [0, 1, 2, 3].map((i) => video(gateways[i % 2] as GatewayProcess, name)),
      )
      return answers.map((answer) => `${answer?.status} ${answer?.code}`).sort()
    }
    // The money that videos hold may come back.
    const two = ['200 undefined', '200 undefined', '503 quota_lease_exhausted', '503 quota_lease_exhausted']
    for (const name of ['account', 'key'] as const) assert.deepEqual(await make(name), two)
    const refused = await video(gateways[1], 'tag')
    assert.ok(refused)
    assert.deepEqual([refused.status, refused.code], [402, 'key_quota_exhausted'])
    assert.match(refused.message, SCOPES.tag.named)
    assert.equal(await refusedBy('tag', refused), small.id)
    await assertSound()
  })

  it('is never overspent where a process is killed, and spent to its end by the other one', async (t) => {
    const { gateways, budget, spentOf, known, assertSound, chat } = await world(t)
    const [other, killed] = gateways
    const budgets = await Promise.all(NAMES.map(async (name) => [name, await budget(name, '2')] as const))
    await known()
    const end = beside(t, () => chat(other, 'beside'))
    const callers = budgets.flatMap(([name]) => {
      const of = (gateway: GatewayProcess) => [0, 1].map(() => spend(() => chat(gateway, name)))
      return [...of(killed), ...of(other)]
    })
    await sleep(600)
    await killed.stop()
    const ends = await Promise.race([Promise.all(callers), sleep(SWEPT_WITHIN_MS, undefined, { ref: false })])
    assert.ok(ends, 'the lease of the killed process came back')
    await end()
    for (const [name, { id }] of budgets) {
      const spent = await spentOf(id)
      t.diagnostic(`${name}: ${spent} of 2`)
      assert.ok(spent <= 2 && spent > 2 - 2 * COST, `${name}: ${spent}`)
    }
    await assertSound()
  })
})

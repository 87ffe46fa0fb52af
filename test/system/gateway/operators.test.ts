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
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import {
  answerJson,
  chatAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'

const TOKEN = 'admin-token-of-this-test'
/** The most time in which a change reaches every process. */
const EVERYWHERE_WITHIN_MS = 5000

interface Body {
  readonly id: string
  readonly secret?: string
  readonly data: readonly Body[]
  readonly [member: string]: unknown
}

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let upstream: ScriptedUpstream
let postgres: PostgresServer | undefined
const running: GatewayProcess[] = []
const cleanUp = cleaningUp()
before(async () => {
  folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const lines = ['one', 'two'].map((id, priority) => {
    return {
      id,
      provider: id,
      protocol: 'openai',
      baseUrl: `${upstream.url}/v1`,
      priority,
      models: { m: id },
    }
  })
  const config = {
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [{ id: 'k', account: 'acme', secret: 'sk-1' }],
    models: [{ id: 'm', kind: 'chat' }],
    lines,
  }
  await writeFile(join(folder.path, 'config.json'), JSON.stringify(config))
})
afterEach(() => Promise.all(running.splice(0).map((gateway) => gateway.stop())))
cleanUp.after(() => postgres?.close())

async function start(databaseUrl: string): Promise<GatewayProcess> {
  const configFile = join(folder.path, 'config.json')
  const gateway = await startGatewayProcess({
    ADMIN_TOKEN: TOKEN,
    DATABASE_URL: databaseUrl,
    GATEWAY_CONFIG: configFile,
  })
  running.push(gateway)
  return gateway
}

async function ask(gateway: GatewayProcess, method: string, path: string, body?: object) {
  const response = await fetch(`${gateway.url}/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await jsonOf<Body>(response) }
}

async function call(
  gateway: GatewayProcess,
  secret: string,
): Promise<{ status: number; id: string; line: string }> {
  const asked = upstream.requests.length
  const answer = await post(gateway.url, chat('m'), { authorization: `Bearer ${secret}` })
  await answer.arrayBuffer()
  const line = upstream.requests.slice(asked).at(-1)?.json.model ?? 'none'
  return { status: answer.status, id: answer.headers.get('x-request-id') ?? '', line }
}

/** Calls until an answer is as it should be; it has to be within 5 s of the change. */
async function becomes(
  gateway: GatewayProcess,
  secret: string,
  as: (answer: Awaited<ReturnType<typeof call>>) => boolean,
  what: string,
): Promise<void> {
  const deadline = performance.now() + EVERYWHERE_WITHIN_MS
  while (!as(await call(gateway, secret))) {
    assert.ok(performance.now() < deadline, `not within 5 s: ${what}`)
    await sleep(50)
  }
}

describe('operators of several processes', () => {
  for (const [name, databaseUrl, skip] of [
    ['SQLite', async () => `sqlite:${join(folder.path, 'two.db')}`, false],
    [
      'Postgres',
      async () => {
        postgres = await startPostgres()
        return postgres.url
      },
      WITHOUT_POSTGRES,
    ],
  ] as const) {
    it(`a change of keys and lines at one reaches the other within 5 s: ${name}`, { skip }, async () => {
      const url = await databaseUrl()
      const one = await start(url)
      const other = await start(url)
      const { secret = '', id } = (await ask(one, 'POST', '/keys', { account: 'acme' })).body
      assert.equal((await call(other, secret)).status, 200, 'a new key is known at once')

      await ask(one, 'PATCH', `/keys/${id}`, { enabled: false })
      await becomes(other, secret, ({ status }) => status === 403, 'the key is disabled')
      await ask(one, 'PATCH', `/keys/${id}`, { enabled: true })
      await becomes(other, secret, ({ status }) => status === 200, 'the key is enabled')
      await ask(one, 'PATCH', `/keys/${id}`, { allow_models: ['other'] })
      await becomes(other, secret, ({ status }) => status === 403, 'the key may not use the model')

      const rotated = (await ask(one, 'POST', '/keys/k/rotate')).body.secret ?? ''
      await becomes(other, 'sk-1', ({ status }) => status === 401, 'the secret is another')
      assert.equal((await call(other, rotated)).line, 'one')

      await ask(one, 'PATCH', '/lines/one', { enabled: false })
      assert.equal((await call(one, rotated)).line, 'two', 'at once where it was told')
      await becomes(other, rotated, ({ line }) => line === 'two', 'the line is off')
      await ask(other, 'PATCH', '/lines/one', { enabled: null })
      await becomes(one, rotated, ({ line }) => line === 'one', 'the line is as configured')

      upstream.script = (res, { json }) =>
        json.model === 'one' ? answerJson(res, 429, {}, { 'retry-after': '60' }) : chatAnswer(res)
      for (const gateway of [one, other]) {
        assert.equal((await call(gateway, rotated)).line, 'two', 'the first line rests')
        assert.ok(((await ask(gateway, 'GET', '/lines/one')).body.rest_ms as number) > 50_000)
      }
      upstream.script = (res) => chatAnswer(res)
      assert.equal((await call(other, rotated)).line, 'two')
      await ask(one, 'PATCH', '/lines/one', { rests: [] })
      assert.equal((await call(one, rotated)).line, 'one', 'at once where it was told')
      await becomes(other, rotated, ({ line }) => line === 'one', 'its rest is lifted')
      const { data } = (await ask(other, 'GET', '/changes?subject=one&limit=1')).body
      assert.deepEqual(
        [data[0]?.action, data[0]?.actor, data[0]?.after],
        ['line.rests_lifted', 'admin', { rests: [] }],
      )

      await ask(other, 'DELETE', '/keys/k')
      await becomes(one, rotated, ({ status }) => status === 401, 'the key is deleted')
    })
  }

  it('deletions and switched-off lines stay so over a restart', async () => {
    const url = `sqlite:${join(folder.path, 'restart.db')}`
    const first = await start(url)
    const { secret = '' } = (await ask(first, 'POST', '/keys', { id: 'kept', account: 'globex' })).body
    await ask(first, 'DELETE', '/keys/k')
    await ask(first, 'PATCH', '/lines/one', { enabled: false })
    first.kill('SIGTERM')
    assert.equal((await first.exited).code, 0)
    const second = await start(url)
    assert.equal((await call(second, 'sk-1')).status, 401)
    const answer = await call(second, secret)
    assert.deepEqual([answer.status, answer.line], [200, 'two'], 'from the first call on')
    const changes = (await ask(second, 'GET', '/changes')).body.data
    assert.deepEqual(
      changes.map(({ action, subject }) => [action, subject]),
      [
        ['line.switched', 'one'],
        ['key.deleted', 'k'],
        ['key.created', 'kept'],
      ],
    )
  })
})

describe('the calls and tickets that operators see', () => {
  it('are those of all accounts', async () => {
    const gateway = await start('memory:')
    const { secret = '' } = (await ask(gateway, 'POST', '/keys', { account: 'globex' })).body
    const ours = await call(gateway, 'sk-1')
    const theirs = await call(gateway, secret)
    const headers = { authorization: 'Bearer sk-1', 'content-type': 'application/json' }
    const ticketOn = (request_id: string) =>
      fetch(`${gateway.url}/v1/tickets`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ request_id, message: 'Why?' }),
      })
    const ticket = await jsonOf<Body>(await ticketOn(ours.id))
    assert.equal((await envelopeOf(await ticketOn(theirs.id))).error.code, 'not_found')

    const list = (await ask(gateway, 'GET', '/tickets?status=open')).body.data
    assert.deepEqual(
      list.map(({ id, call }) => [id, (call as Body).id]),
      [[ticket.id, ours.id]],
    )
    await ask(gateway, 'PATCH', `/tickets/${ticket.id}`, { reply: 'So it is.' })
    const answered = await fetch(`${gateway.url}/v1/tickets/${ticket.id}`, { headers })
    assert.equal((await jsonOf<Body>(answered)).status, 'answered')
    const changes = (await ask(gateway, 'GET', `/changes?subject=${ticket.id}`)).body.data
    assert.deepEqual(
      changes.map(({ action }) => action),
      ['ticket.changed'],
    )

    for (const { id } of [ours, theirs]) {
      assert.equal((await ask(gateway, 'GET', `/calls/${id}`)).body.id, id)
    }
    const callsOf = async (query: string) =>
      (await ask(gateway, 'GET', `/calls?${query}`)).body.data.map(({ id }) => id)
    const all = await callsOf('model=m')
    assert.deepEqual(all, [theirs.id, ours.id])
    assert.deepEqual(await callsOf('account=globex&model=m'), [theirs.id])
    assert.deepEqual(await callsOf('account=nobody'), [])
    const own = await fetch(`${gateway.url}/v1/calls`, { headers })
    const seen = (await jsonOf<Body>(own)).data
    assert.ok(seen.length > 0 && seen.every(({ account }) => account === 'acme'), 'callers see their own')
    const foreign = await envelopeOf(await fetch(`${gateway.url}/v1/calls?account=globex`, { headers }))
    assert.deepEqual([foreign.error.code, foreign.error.param], ['invalid_request', 'account'])
  })
})

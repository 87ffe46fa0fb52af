import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type Exchange, readExchange } from '../../support/exchange.ts'
import {
  type GatewayProcess,
  lookUp,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type KeepingUpstream, startKeepingUpstream } from '../../support/responses-upstream.ts'
import { answerJson } from '../../support/scripted-upstream.ts'

const KEY = 'sk-acme-1'
const ADMIN = 'admin-1'
/** The cost of one response: 5 tokens of input at 1, 2 cached at 0.5 and 3 of output at 2, a million of each. */
const COST = '0.000012'

describe('responses in the assembled gateway, two processes on one database', () => {
  let one: KeepingUpstream
  let two: KeepingUpstream
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let env: Record<string, string>
  let here: GatewayProcess
  let there: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    one = await startKeepingUpstream('one')
    cleanUp.after(() => one.close())
    two = await startKeepingUpstream('two')
    cleanUp.after(() => two.close())
    folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
    const config = join(folder.path, 'config.json')
    const price = { inputPerMillion: '1', cachedInputPerMillion: '0.5', outputPerMillion: '2' }
    await writeFile(
      config,
      JSON.stringify({
        accounts: [{ id: 'acme', balance: '5' }],
        keys: [
          { id: 'key_acme', account: 'acme', secret: KEY },
          { id: 'key_few', account: 'acme', secret: 'sk-few', limits: { rpm: 2 } },
        ],
        models: [{ id: 'chat', kind: 'chat', maxOutputTokens: 100, price }],
        lines: [one, two].map(({ url }, i) => ({
          id: `line-${i}`,
          provider: 'p',
          protocol: 'openai',
          baseUrl: `${url}/v1`,
          priority: i,
          circuit: { minimumCalls: 1000 },
          models: { chat: 'u' },
        })),
      }),
    )
    env = {
      GATEWAY_CONFIG: config,
      DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
      ADMIN_TOKEN: ADMIN,
    }
    here = await startGatewayProcess(env)
    cleanUp.after(() => here.stop())
    there = await startGatewayProcess(env)
    cleanUp.after(() => there.stop())
  })

  const ask = async (
    { url }: GatewayProcess,
    method: string,
    rest: string,
    { key = KEY, ...headers }: Record<string, string> = {},
    body?: object,
  ): Promise<Exchange> =>
    readExchange(
      await fetch(`${url}/v1/responses${rest}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        ...(body && { body: JSON.stringify({ model: 'chat', input: 'hi', ...body }) }),
      }),
    )
  const create = (gateway: GatewayProcess, body: object = {}, headers: Record<string, string> = {}) =>
    ask(gateway, 'POST', '', headers, body)
  const idIn = ({ text }: Exchange): string => /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? ''
  const books = async () => {
    const response = await fetch(`${here.url}/admin/ledger/check`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    })
    const { violations, charges, spent } = await jsonOf<{
      violations: unknown[]
      charges: number
      spent: string
    }>(response)
    assert.deepEqual(violations, [])
    return { charges, spent }
  }

  it('a conversation goes on in the other process, on its line, each turn charged once', async () => {
    const before = await books()
    const { script } = one
    one.script = (res) => answerJson(res, 500, { error: { message: 'down' } })
    const first = await create(here, { stream: true })
    one.script = script
    const asked = one.requests.length
    const second = await create(there, { previous_response_id: idIn(first) })
    const third = await create(here, { previous_response_id: idIn(second), stream: true })
    for (const answer of [first, second, third]) {
      assert.equal(answer.status, 200)
      assert.match(idIn(answer), /^resp_two_/)
      const entry = await lookUp(here.url, answer.requestId, KEY)
      assert.equal(entry.billing?.charged, COST)
      assert.equal(entry.usage?.source, 'measured')
    }
    assert.equal(one.requests.length, asked)
    assert.equal((await books()).charges, before.charges + 3)
  })

  it('asking about a response costs nothing, and takes nothing from the limits of calls', async () => {
    const id = idIn(await create(here))
    const before = await books()
    const few = { key: 'sk-few' }
    assert.equal((await ask(there, 'GET', `/${id}`, few)).status, 200)
    assert.equal((await ask(there, 'GET', '/resp_none', few)).status, 404)
    for (let i = 0; i < 5; i++) assert.equal((await ask(there, 'GET', `/${id}`, few)).status, 200)
    const deleted = await ask(there, 'DELETE', `/${id}`)
    assert.equal(deleted.status, 200)
    const entry = await lookUp(here.url, deleted.requestId, KEY)
    assert.equal(entry.method, 'DELETE')
    assert.equal(entry.billing, null)
    assert.deepEqual(await books(), before)
    assert.equal((await create(here, { previous_response_id: id })).errorCode, 'not_found')
  })

  it('a stream with an Idempotency-Key runs once; the log has what it said', async () => {
    const key = { 'idempotency-key': 'key-1' }
    const before = await books()
    const asked = one.requests.length
    const first = await create(here, { stream: true }, key)
    assert.equal(first.status, 200)
    const again = await create(there, { stream: true }, key)
    assert.equal(again.status, 409)
    assert.equal(again.errorCode, 'idempotency_key_replayed')
    assert.equal(again.envelope().error.details?.original_request_id, first.requestId)
    assert.equal(one.requests.length, asked + 1)
    assert.equal((await lookUp(here.url, first.requestId, KEY)).response_body, first.text)
    assert.equal((await books()).charges, before.charges + 1)
  })

  it('a repetition gets idempotency_key_replayed, although what it went on from is deleted by now', async () => {
    const key = { 'idempotency-key': 'key-2' }
    const body = { previous_response_id: idIn(await create(here)) }
    const first = await create(here, body, key)
    assert.equal(first.status, 200)
    await ask(here, 'DELETE', `/${body.previous_response_id}`)
    assert.equal((await create(there, body, key)).errorCode, 'idempotency_key_replayed')
    assert.equal((await create(there, body, { 'idempotency-key': 'key-3' })).errorCode, 'not_found')
  })

  it('a response that was noted is known after the process was killed', async () => {
    const id = idIn(await create(there))
    there.kill('SIGKILL')
    await there.exited
    there = await startGatewayProcess(env)
    assert.equal((await create(there, { previous_response_id: id })).status, 200)
    assert.equal((await ask(there, 'GET', `/${id}`)).status, 200)
  })

  it('a response in the background is refused before anything is held', async () => {
    const before = await books()
    const asked = one.requests.length
    const refused = await create(here, { background: true })
    assert.equal(refused.status, 400)
    assert.equal(refused.errorCode, 'unsupported_feature')
    assert.equal(refused.envelope().error.param, 'background')
    assert.equal(one.requests.length, asked)
    assert.deepEqual(await books(), before)
  })
})

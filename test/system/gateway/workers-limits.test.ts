import assert from 'node:assert/strict'
import { it } from 'node:test'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { startFileGateway } from './file-gateway.ts'
import { askedChat } from './keep-alive-load.ts'

const CONCURRENCY = 3
const AT_ONCE = 16
const IN_TURN = 40
const TENANTS = ['one', 'other']

it('workers share the slots of two accounts: none has too many, and each is free when its answer has ended', async (t) => {
  const server = await startFileGateway(
    t,
    { WORKERS: '2' },
    {
      accounts: TENANTS.map((id) => ({ id, balance: '1000', limits: { concurrency: CONCURRENCY } })),
      keys: TENANTS.map((id) => ({ id, account: id, secret: `sk-${id}` })),
    },
  )
  const answers: (() => void)[] = []
  server.upstream.script = (res) => void answers.push(() => chatAnswer(res))
  const ask = async (tenant: string): Promise<{ status: number; code: unknown }> => {
    const { path, headers, body } = askedChat()
    const response = await fetch(server.gateway.url + path, {
      method: 'POST',
      // Each call on a connection of its own: which worker takes it is up to the system.
      headers: { ...headers, authorization: `Bearer sk-${tenant}`, connection: 'close' },
      body,
    })
    const { error } = (await response.json()) as { error?: { code?: unknown } }
    return { status: response.status, code: error?.code }
  }
  const held = TENANTS.length * CONCURRENCY

  const asked = TENANTS.flatMap((tenant) => Array.from({ length: AT_ONCE }, () => ask(tenant)))
  let refused = 0
  for (const each of asked) void each.then(({ status }) => (refused += status === 429 ? 1 : 0))
  await until(() => refused + answers.length >= asked.length, 'each call is held or refused')
  assert.equal(answers.length, held)
  for (const answer of answers) answer()
  const first = await Promise.all(asked)
  for (const i of TENANTS.keys()) {
    const own = first.slice(i * AT_ONCE, (i + 1) * AT_ONCE)
    assert.equal(own.filter(({ status }) => status === 200).length, CONCURRENCY)
    assert.equal(own.filter(({ code }) => code === 'concurrency_limited').length, AT_ONCE - CONCURRENCY)
  }

  server.upstream.script = (res) => chatAnswer(res)
  const inTurn = async (tenant: string): Promise<number[]> => {
    const seen: number[] = []
    while (seen.length < IN_TURN) seen.push((await ask(tenant)).status)
    return seen
  }
  const callers = TENANTS.flatMap((tenant) => Array.from({ length: CONCURRENCY }, () => inTurn(tenant)))
  const statuses = (await Promise.all(callers)).flat()
  assert.deepEqual([...new Set(statuses)], [200])

  const workers = server.gateway.stdout.matchAll(/"pid":(\d+),[^\n]*"msg":"call"/g)
  assert.equal(new Set([...workers].map(([, pid]) => pid)).size, 2, 'both workers served')
  const { violations, charges } = await server.ledger()
  assert.deepEqual(violations, [])
  assert.equal(charges, held + statuses.length)
})

for (const onStoreError of ['local', 'refuse'])
  it(`a primary process that was paused has no slots of calls that have ended: onStoreError ${onStoreError}`, async (t) => {
    const { gateway, upstream } = await startFileGateway(
      t,
      { WORKERS: '2' },
      {
        accounts: [{ id: 'one', limits: { concurrency: 2 } }],
        keys: [{ id: 'one', account: 'one', secret: 'sk-one' }],
        onStoreError,
      },
    )
    upstream.script = (res) => chatAnswer(res)
    const ask = async (): Promise<number> => {
      const { path, headers, body } = askedChat()
      const authorized = { ...headers, authorization: 'Bearer sk-one', connection: 'close' }
      const response = await fetch(gateway.url + path, { method: 'POST', headers: authorized, body })
      await response.arrayBuffer()
      return response.status
    }
    assert.equal(await ask(), 200)

    gateway.kill('SIGSTOP')
    const paused = await Promise.all([ask(), ask()])
    gateway.kill('SIGCONT')
    const expected = onStoreError === 'local' ? 200 : 500
    assert.deepEqual(paused, [expected, expected])

    // Meanwhile each worker has asked the primary process again. Before, it counts by itself, or refuses.
    const areAllAnswered = async (): Promise<boolean> => {
      const statuses: number[] = []
      const end = performance.now() + 3000
      while (performance.now() < end) statuses.push(await ask())
      return statuses.every((status) => status === 200)
    }
    await untilAsync(areAllAnswered, 'calls one after the other are all answered', 20_000)
  })

import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_OPEN_TICKETS } from '../../../lib/core/tickets/index.ts'
import { startReceiver } from '../../management/webhooks/receivers.ts'
import { temporaryDatabase } from '../../stores/sql/support/temporary-database.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'

const ADMIN_TOKEN = 'an-admin-token-of-the-tests'
const cleanUp = cleaningUp(afterEach)

function configOn({ url }: ScriptedUpstream) {
  return {
    accounts: [{ id: 'poor', balance: '0' }, { id: 'globex' }, { id: 'hasty', limits: { rpm: 3 } }],
    keys: [
      { id: 'key_poor', account: 'poor', secret: 'sk-poor' },
      { id: 'key_globex', account: 'globex', secret: 'sk-globex' },
      { id: 'key_hasty', account: 'hasty', secret: 'sk-hasty' },
    ],
    models: [{ id: 'model', kind: 'chat', price: { perRequest: '1' } }],
    lines: [
      { id: 'line', provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { model: 'model' } },
    ],
  }
}

const CHAT = { model: 'model', messages: [{ role: 'user', content: 'Hello' }] }
const by = (secret: string): RequestInit => ({ headers: { authorization: `Bearer ${secret}` } })

async function open(databaseUrl: string) {
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const gateway = await assembledGateway(cleanUp, configOn(upstream), {
    databaseUrl,
    adminToken: ADMIN_TOKEN,
    webhookAllowPrivate: true,
  })
  const idOf = async (response: Response): Promise<string> => {
    await response.arrayBuffer()
    return String(response.headers.get('x-request-id'))
  }
  const ticket = (secret: string, id: string) =>
    gateway.send('/v1/tickets', { request_id: id, message: 'Why?' }, by(secret))
  return { ...gateway, idOf, ticket }
}

for (const [name, database] of [
  ['memory', async () => 'memory:'],
  [
    'SQLite',
    async () => {
      const { url, remove } = await temporaryDatabase()
      cleanUp.after(remove)
      return url
    },
  ],
] as const)
  describe(`tenants of one gateway (${name})`, () => {
    it('do not push out or delay what webhooks receive of another, however many tickets they open', async () => {
      const { send, idOf, ticket } = await open(await database())
      const refusals = Array.from({ length: MAX_OPEN_TICKETS }, async () => {
        const refused = await send('/v1/chat/completions', CHAT, by('sk-poor'))
        assert.equal(refused.status, 402)
        return idOf(refused)
      })
      const calls = await Promise.all([send('/v1/models', undefined, by('sk-poor')).then(idOf), ...refusals])
      const receiver = await startReceiver(cleanUp, () => '')
      const types: string[] = []
      let isSlow = true
      receiver.answer = async (_req, res, body) => {
        while (isSlow) await sleep(20)
        types.push((JSON.parse(body) as { type: string }).type)
        res.writeHead(204).end()
      }
      const made = await send('/admin/webhooks', { url: receiver.url }, by(ADMIN_TOKEN))
      assert.equal(made.status, 201)
      const scope = { account: 'globex' }
      const budget = { scope, amount: '1', period: 'total', hard: true }
      assert.equal((await send('/admin/budgets', budget, by(ADMIN_TOKEN))).status, 201)

      const statuses = await Promise.all(
        calls.slice(0, MAX_OPEN_TICKETS).map(async (id) => (await ticket('sk-poor', id)).status),
      )
      assert.deepEqual(statuses, Array(MAX_OPEN_TICKETS).fill(201))

      const again = await ticket('sk-poor', String(calls[0]))
      assert.deepEqual([again.status, again.headers.get('x-should-retry')], [409, 'false'])
      assert.match((await envelopeOf(again)).error.message, /open ticket, tkt_\w+/)
      const over = await ticket('sk-poor', String(calls.at(-1)))
      const { error } = await envelopeOf(over)
      assert.deepEqual([over.status, error.code], [409, 'conflict'])
      assert.match(error.message, /100 open tickets/)

      const id = await idOf(await send('/v1/chat/completions', CHAT, by('sk-globex')))
      // A budget counts from some seconds after it was made.
      const asked = async () => {
        const answer = await send('/v1/chat/completions', CHAT, by('sk-globex'))
        await answer.arrayBuffer()
        return answer.status
      }
      await untilAsync(async () => (await asked()) === 402, 'the budget is spent')
      isSlow = false
      await until(() => types.includes('budget.exhausted'), 'the event of the other tenant has come')
      const before = types.indexOf('budget.exhausted')
      assert.ok(before < MAX_OPEN_TICKETS / 2, `${before} events came before it`)
      assert.equal((await ticket('sk-globex', id)).status, 201, 'the other has tickets of its own')
      await until(() => types.length >= MAX_OPEN_TICKETS + 2, 'all events have come')
      assert.equal(types.filter((type) => type === 'ticket.opened').length, MAX_OPEN_TICKETS + 1)
    })

    it('spend their own rate limit on tickets', async () => {
      const { send, idOf, ticket } = await open(await database())
      const id = await idOf(await send('/v1/models', undefined, by('sk-hasty')))
      const statuses: number[] = []
      for (let n = 0; n < 5; n++) statuses.push((await ticket('sk-hasty', id)).status)
      assert.deepEqual(statuses, [201, 409, 409, 429, 429])
    })
  })

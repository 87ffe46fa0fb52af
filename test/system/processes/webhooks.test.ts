import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { newEvent } from '../../../lib/management/webhooks/index.ts'
import { SqlWebhookOutbox } from '../../../lib/stores/sql/index.ts'
import { startReceiver } from '../../management/webhooks/receivers.ts'
import { sharedPostgres } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until, untilAsync } from '../../support/until.ts'
import { startFileGateway } from '../gateway/file-gateway.ts'
import { askedChat, keepAliveLoad } from '../gateway/keep-alive-load.ts'

const SUBJECTS = 12
/** Deliveries of one webhook that a process has under way. */
const AT_A_TIME = 4
/** Longer than the claim of a process that died. */
const CLAIM_MS = 45_000

describe('webhooks of two processes on Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('one killed in the middle, and ill receivers beside: all events come, in order, repeated with their id', async (t) => {
    const names = await startDnsServer(t)
    // Each process asks this server of names after the signal.
    const preload = `import dns from 'node:dns'; process.on('SIGUSR2', () => dns.setServers(['${names.address}']))`
    const server = await startFileGateway(t, {
      DATABASE_URL: await (await sharedPostgres()).createDatabase(),
      WEBHOOK_ALLOW_PRIVATE: '1',
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
    })
    const start = async () => {
      const more = await startGatewayProcess(server.env)
      t.after(() => more.stop())
      more.kill('SIGUSR2')
      return more
    }
    const second = await start()
    server.gateway.kill('SIGUSR2')
    const create = async (url: string) => {
      const response = await fetch(`${second.url}/admin/webhooks`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.env.ADMIN_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ url }),
      })
      assert.equal(response.status, 201)
      return jsonOf<{ id: string; secret: string }>(response)
    }

    let secret = ''
    const [healthy, slow, redirecting, elsewhere] = [
      await startReceiver(t, () => secret),
      await startReceiver(t, () => ''),
      await startReceiver(t, () => ''),
      await startReceiver(t, () => ''),
    ]
    slow.answer = () => {}
    redirecting.answer = (_, res) => void res.writeHead(307, { location: elsewhere.url }).end()
    for (const ill of ['http://127.0.0.1:9/', slow.url, redirecting.url]) await create(ill)
    for (let i = 0; i < 8; i++) {
      names.names.set(`hangs-${i}.example`, 'hangs')
      await create(`http://hangs-${i}.example/`)
    }
    ;({ secret } = await create(healthy.url))

    const came: { readonly id: string; readonly n: number; readonly s: string }[] = []
    let held: ServerResponse[] | undefined
    healthy.answer = (req: IncomingMessage, res, body) => {
      const { data } = JSON.parse(body) as { data: { n: number; s: string } }
      came.push({ id: String(req.headers['webhook-id']), ...data })
      if (held) held.push(res)
      else setTimeout(() => res.writeHead(204).end(), 10)
    }
    const outbox = new SqlWebhookOutbox(await open(t, String(server.env.DATABASE_URL)))
    const told = Array.from({ length: SUBJECTS }, () => 0)
    const tell = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round++)
        for (let s = 0; s < SUBJECTS; s++) {
          const n = Number(told[s]) + 1
          told[s] = n
          const facts = { subject: `line:${s}`, at: Date.now(), data: { n, s: String(s) } }
          await outbox.record([newEvent({ type: 'line.down', ...facts })])
        }
    }
    const load = keepAliveLoad(t, second.url, [askedChat()], 2, 200)
    await tell(3)
    await until(() => came.length >= SUBJECTS, 'some events', 30_000)
    held = []
    await tell(2)
    await until(() => held?.length === 2 * AT_A_TIME, 'deliveries of both processes', 30_000)
    server.gateway.kill('SIGKILL')
    await server.gateway.exited
    const before = came.length
    for (const res of held) res.writeHead(204).end()
    held = undefined
    await start()
    await tell(2)
    const complete = () =>
      told.every((last, s) => came.some((event) => event.s === String(s) && event.n === last))
    await until(complete, 'all events', CLAIM_MS)

    const repeated = came.slice(before).filter(({ id }) => came.slice(0, before).some((one) => one.id === id))
    assert.ok(repeated.length > 0, 'what the killed process had under way came again')
    for (let s = 0; s < SUBJECTS; s++) {
      const own = came.filter((event) => event.s === String(s))
      const numbers = own.map(({ n }) => n)
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b),
        'in order',
      )
      assert.deepEqual(
        [...new Set(numbers)],
        Array.from({ length: Number(told[s]) }, (_, n) => n + 1),
        'none is lost',
      )
      for (const n of numbers)
        assert.equal(new Set(own.filter((event) => event.n === n).map(({ id }) => id)).size, 1, 'one id')
    }
    assert.equal(elsewhere.requests, 0, 'no redirect is followed')
    await untilAsync(async () => names.asked.length >= 8, 'the names that hang')
    const at = performance.now()
    await load.more(20)
    assert.ok(performance.now() - at < 5000, 'calls wait for no name')
    await load.stop()
    assert.deepEqual(load.failures, [])
  })
})

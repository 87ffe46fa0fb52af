import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { type Delivery, newEvent, WebhookSender } from '../../../lib/management/webhooks/index.ts'
import { newWebhookSecret } from '../../../lib/management/webhooks/webhook-request.ts'
import { openDatabase, SqlWebhookOutbox, SqlWebhookStore } from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-store.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { until, untilAsync } from '../../support/until.ts'
import { numbersOf, type Receiver, startReceiver } from './receivers.ts'

interface Ill {
  /** The address, where it is not that of a receiver. */
  readonly url?: string
  readonly answer?: (req: IncomingMessage, res: ServerResponse, elsewhere: Receiver) => void
  /** The errors of its deliveries. */
  readonly error: RegExp
  readonly status: number | null
  /** How many of its three deliveries have an attempt. */
  readonly attempted?: number
}

/** Enough for a receiver that answers at once, on a busy machine too. */
const TIMEOUT_MS = 1500

const ILL: Readonly<Record<string, Ill>> = {
  'refuses connections': { url: 'http://127.0.0.1:9/', error: /ECONNREFUSED/, status: null },
  'hangs before its headers': { answer: () => {}, error: /no answer within 1500 ms/, status: null },
  'breaks off': {
    answer: (req) => void req.socket.destroy(),
    error: /UND_ERR_SOCKET|ECONNRESET/,
    status: null,
  },
  'answers 500': {
    answer: (_, res) => void res.writeHead(500).end('no'),
    error: /answered 500/,
    status: 500,
  },
  'answers 429': { answer: (_, res) => void res.writeHead(429).end(), error: /answered 429/, status: 429 },
  'drips an error': {
    answer(_, res) {
      const drip = setInterval(() => res.write('.'), 20)
      res.writeHead(503).on('close', () => clearInterval(drip))
    },
    error: /answered 503/,
    status: 503,
  },
  'redirects elsewhere': {
    answer: (_, res, { url }) => void res.writeHead(307, { location: url }).end(),
    error: /answered 307/,
    status: 307,
  },
  'is no HTTP': { answer: (req) => void req.socket.end('what?\r\n\r\n'), error: /HTTP/, status: null },
  'has too many headers': {
    answer(req) {
      req.socket.write(`HTTP/1.1 204 OK\r\n${`x: ${'y'.repeat(1000)}\r\n`.repeat(100)}\r\n`)
    },
    error: /UND_ERR_HEADERS_OVERFLOW|HPE_HEADER_OVERFLOW|UND_ERR/,
    status: null,
  },
  'is gone': { answer: (_, res) => void res.writeHead(410).end(), error: /answered 410/, status: 410 },
  'is not found by its name': { url: 'http://nobody.invalid/', error: /ENOTFOUND/, status: null },
}

const log: { fields: object; message: string }[] = []
const keep = (fields: object, message: string): void => void log.push({ fields, message })
const logger = { info: keep, warn: keep, error: keep }

async function scene(t: TestContext, allowPrivate: boolean) {
  const db = await openDatabase('sqlite::memory:')
  const [webhooks, outbox] = [new SqlWebhookStore(db), new SqlWebhookOutbox(db)]
  const secret = newWebhookSecret()
  const add = (id: string, url: string) =>
    webhooks.create({ id, url, events: null, description: null, secret }, originOf())
  const sender = new WebhookSender({
    outbox,
    allowPrivate,
    timeoutMs: TIMEOUT_MS,
    pollMs: 10,
    logger,
  })
  t.after(() => sender.close().then(() => db.destroy()))
  const receive = () => startReceiver(t, () => secret)
  const tell = (n: number, subject = 'line:a') =>
    outbox.record([newEvent({ type: 'line.down', subject, at: Date.now(), data: { n } })])
  const deliveries = async (webhook: string) =>
    (await webhooks.deliveries({ webhook, limit: 99 })) as readonly Delivery[]
  return { webhooks, add, receive, tell, deliveries }
}

describe('a receiver beside one that', () => {
  for (const [name, { url, answer, error, status }] of Object.entries(ILL)) {
    it(`${name} gets all its events, in order and in time`, async (t) => {
      const { add, receive, tell, deliveries, webhooks } = await scene(t, true)
      await startDnsServer(t)
      const [ill, healthy, elsewhere] = [await receive(), await receive(), await receive()]
      ill.answer = answer ? (req, res) => answer(req, res, elsewhere) : undefined
      await add('wh_ill', url ?? ill.url)
      await add('wh_well', healthy.url)
      for (let n = 1; n <= 3; n++) await tell(n)
      await until(() => healthy.received.length === 3, 'healthy receiver', 8000)
      assert.deepEqual(numbersOf(healthy), [1, 2, 3])
      await untilAsync(async () => (await deliveries('wh_ill')).some((one) => one.error !== null))
      const told = await deliveries('wh_ill')
      const first = told.at(-1)
      assert.match(String(first?.error), error)
      assert.equal(first?.status, status)
      assert.ok(
        told.every(({ deliveredAt, error: words }) => deliveredAt === null && (words ?? '').length <= 100),
      )
      assert.deepEqual(
        told.map(({ attempts }) => attempts),
        [0, 0, 1],
        'the next events wait',
      )
      const [ends] = await webhooks.list(1)
      assert.equal(ends?.disabledAt !== null, status === 410)
      assert.equal(elsewhere.requests, 0, 'no redirect is followed')
    })
  }

  it('hang in their names gets its events, and the files of the process are read', async (t) => {
    const { add, receive, tell, deliveries } = await scene(t, true)
    const names = await startDnsServer(t)
    const healthy = await receive()
    names.names.set('well.example', ['127.0.0.1'])
    for (let i = 0; i < 12; i++) {
      names.names.set(`ill-${i}.example`, 'hangs')
      await add(`wh_ill_${i}`, `http://ill-${i}.example/`)
    }
    await add('wh_well', healthy.url.replace('127.0.0.1', 'well.example'))
    await tell(1)
    await until(() => names.asked.filter((name) => name.startsWith('ill-')).length >= 12, 'all questions')
    const from = performance.now()
    await readFile(import.meta.filename)
    assert.ok(performance.now() - from < 1200)
    await until(() => healthy.received.length === 1, 'healthy receiver')
    await untilAsync(async () => (await deliveries('wh_ill_0'))[0]?.error != null)
    assert.equal((await deliveries('wh_ill_0'))[0]?.error, 'no answer within 1500 ms')
  })

  it('answers with a huge body is served too, and its body is not read', async (t) => {
    const { add, receive, tell, deliveries } = await scene(t, true)
    const huge = await receive()
    let written = 0
    huge.answer = (_, res) => {
      const more = (): void => {
        while (!res.destroyed && written < 1e9) {
          written += 65_536
          if (!res.write(Buffer.alloc(65_536))) return
        }
      }
      res.writeHead(200).on('drain', more)
      more()
    }
    await add('wh', huge.url)
    await tell(1)
    await untilAsync(async () => typeof (await deliveries('wh'))[0]?.deliveredAt === 'number')
    assert.ok(written < 20_000_000, `${written} bytes`)
  })
})

describe('without private addresses', () => {
  const PRIVATE = [
    'https://localhost/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://10.0.0.8/',
    'https://169.254.169.254/latest/meta-data',
    'http://example.com/',
  ]

  it('receive nothing, in whichever way their webhook was added', async (t) => {
    const { add, receive, tell, deliveries } = await scene(t, false)
    const inside = await receive()
    const { port } = new URL(inside.url)
    for (const [i, url] of [...PRIVATE, inside.url, `https://127.0.0.1:${port}/`].entries())
      await add(`wh_${i}`, url)
    await tell(1)
    for (let i = 0; i < PRIVATE.length + 2; i++) {
      await untilAsync(async () => (await deliveries(`wh_${i}`))[0]?.error != null)
      const [only] = await deliveries(`wh_${i}`)
      assert.match(String(only?.error), /the address must be/)
    }
    assert.equal(inside.requests, 0)
  })

  for (const [n, addresses] of [
    ['127.0.0.1'],
    ['::1'],
    ['93.184.216.34', '127.0.0.1'],
    ['::ffff:10.0.0.8'],
  ].entries()) {
    it(`none is connected to whose name resolves to ${addresses}`, async (t) => {
      const { add, receive, tell, deliveries } = await scene(t, false)
      const inside = await receive()
      const names = await startDnsServer(t)
      names.names.set(`hooks-${n}.example`, addresses)
      await add('wh', `https://hooks-${n}.example:${new URL(inside.url).port}/`)
      await tell(1)
      await untilAsync(async () => (await deliveries('wh'))[0]?.error != null)
      assert.equal((await deliveries('wh'))[0]?.error, 'the address is not a public one')
      assert.equal(inside.requests, 0)
    })
  }
})

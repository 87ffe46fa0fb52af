import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { BACKENDS, type Backend } from '../../stores/sql/support/postgres-database.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { FAST, realMs, theirMs } from './fast-gateways.ts'
import { costOf, endInGoodOrder, readBooks, startPaidGateway } from './ledger-gateway.ts'
import { ask, begin, type Seen } from './ledger-load.ts'

const PAUSED_MS = 70_000
const WORDS = ['one ', 'two ', 'three']
const EVENTS = chatEvents(WORDS)
/** The role and the first word. */
const BEGINNING = 2

/** Stops a process, and never while it holds the lock of a SQLite file, which nobody could take from it. */
async function pause(gateway: GatewayProcess, databaseUrl: string): Promise<void> {
  for (;;) {
    gateway.kill('SIGSTOP')
    await sleep(50)
    if (!databaseUrl.startsWith('sqlite:')) return
    const db = new DatabaseSync(databaseUrl.slice('sqlite:'.length), { timeout: 1000 })
    try {
      db.exec('begin immediate; rollback')
      return
    } catch {
      gateway.kill('SIGCONT')
      await sleep(20)
    } finally {
      db.close()
    }
  }
}

/** Asks until the ledger has none of these leases any more. */
async function untilSwept(databaseUrl: string, leases: ReadonlySet<string>): Promise<void> {
  const db = await openDatabase(databaseUrl, { readOnly: true })
  try {
    const ledger = new SqlLedger(db)
    while ((await ledger.leases()).some(({ id }) => leases.has(id))) await sleep(250)
  } finally {
    await db.destroy()
  }
}

async function openLeases(databaseUrl: string): Promise<Set<string>> {
  const db = await openDatabase(databaseUrl, { readOnly: true })
  const open = await new SqlLedger(db).leases()
  await db.destroy()
  return new Set(open.map(({ id }) => id))
}

/** Asks again where the keys could not be looked up: where the machine is slow, a database may take too long for that. */
async function askKeyed(gateway: GatewayProcess): Promise<Seen> {
  const isTold = () => gateway.logged.some(({ msg }) => msg === 'store is away')
  for (;;) {
    const seen = await ask(gateway, { streamed: true, key: 'k' })
    if (seen.code !== 'internal_error') return seen
    await until(isTold, 'the log to say why')
    await sleep(250)
  }
}

async function standStill(t: TestContext, { url }: Backend): Promise<void> {
  const database = await url(t)
  const goOn = Promise.withResolvers<void>()
  const upstream = await startUpstream(async (res, _request, index) => {
    if (index >= 2) return stream(res, EVENTS)
    await stream(res, EVENTS.slice(0, BEGINNING), { end: false })
    await goOn.promise
    for (const event of EVENTS.slice(BEGINNING)) res.write(event)
    res.end()
  })
  t.after(() => upstream.close())
  const first = await startPaidGateway(t, upstream, database, { more: FAST })
  const keyed = await begin(first, { streamed: true, key: 'k' })
  const unkeyed = await begin(first, { streamed: true })
  const ofFirst = await openLeases(database)
  assert.ok(ofFirst.size > 0)
  const second = await startPaidGateway(t, upstream, database, { more: FAST })

  await pause(first, database)
  const paused = performance.now()
  /** By the clocks of the gateways. */
  const since = () => Math.round(theirMs(performance.now() - paused))
  const swept = untilSwept(database, ofFirst).then(since)
  let taken: Seen
  do {
    await sleep(500)
    taken = await askKeyed(second)
  } while (taken.code === 'idempotency_key_in_use')
  const takenOver = since()
  assert.deepEqual([taken.end, taken.code], ['whole', null])
  t.diagnostic(`leases swept after ${await swept} ms, key taken over after ${takenOver} ms`)
  assert.ok((await swept) > 25_000, 'not before its owner has stopped using it')
  assert.ok(takenOver > 30_000, 'not while its owner may still use it')

  await sleep(realMs(PAUSED_MS - since()))
  goOn.resolve()
  await sleep(100)
  first.kill('SIGCONT')
  const fenced = await keyed.end()
  assert.deepEqual([fenced.end, fenced.code], ['broken', 'idempotency_key_in_use'])
  const late = await unkeyed.end()
  assert.deepEqual([late.end, late.code], ['whole', null])
  const others = [await ask(first, { streamed: true }), await ask(second, { streamed: true })]
  for (const { end, code } of others) assert.deepEqual([end, code], ['whole', null])
  for (const gateway of [first, second]) {
    const repeated = await askKeyed(gateway)
    assert.deepEqual([repeated.code, repeated.replays], ['idempotency_key_replayed', taken.requestId])
  }
  await endInGoodOrder(first, second)

  const { charges, voids, overrun } = await readBooks(database)
  const charged = [taken, late, ...others].map(({ requestId }) => requestId)
  assert.deepEqual([...charges.keys()].sort(), charged.sort())
  assert.deepEqual([...new Set(charges.values())], [costOf(WORDS.length)])
  assert.equal(voids.size, 0)
  assert.equal(overrun, costOf(WORDS.length), 'what was charged on the lease that was swept')
}

describe('a process that stands still for 70 s of its clocks, with a claim and a lease', {
  concurrency: true,
  timeout: 240_000,
}, () => {
  for (const backend of BACKENDS) {
    const options = { skip: backend.skip, timeout: 240_000 }
    it(`is fenced and charged for what it had admitted, no more: ${backend.name}`, options, (t) =>
      standStill(t, backend),
    )
  }
})

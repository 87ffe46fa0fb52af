import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { watchHeldUp } from '../../support/held-up.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until } from '../../support/until.ts'
import { endInGoodOrder, readBooks, startPaidGateway, untilReadiness } from './ledger-gateway.ts'
import {
  assertChargedOnce,
  assertInTime,
  assertRightlyRefused,
  startLoad,
  startUnhurriedUpstream,
  tally,
} from './ledger-load.ts'

const AWAY_MS = 8000

const OUTAGES = [
  {
    name: 'stopped, and started again',
    leave: (postgres: PostgresServer) => postgres.stop(),
    comeBack: (postgres: PostgresServer) => postgres.start(),
  },
  {
    name: 'frozen, and goes on',
    leave: async (postgres: PostgresServer) => postgres.freeze(),
    comeBack: async (postgres: PostgresServer) => postgres.thaw(),
  },
]

async function goThrough(t: TestContext, { leave, comeBack }: (typeof OUTAGES)[number]): Promise<void> {
  const postgres = await startPostgres()
  t.after(() => postgres.close())
  const upstream = await startUnhurriedUpstream()
  t.after(() => upstream.close())
  const database = await postgres.createDatabase()
  const gateway = await startPaidGateway(t, upstream, database)
  const heldUpMs = watchHeldUp(t)
  const load = startLoad(gateway)
  const { seen } = load
  await until(() => seen.length > 500, 'the load')
  assert.deepEqual(
    seen.filter(({ end }) => end !== 'whole'),
    [],
  )

  await leave(postgres)
  const away = performance.now()
  await untilReadiness(gateway, 503)
  await sleep(AWAY_MS - (performance.now() - away))
  await untilReadiness(gateway, 503)
  const back = performance.now()
  await comeBack(postgres)
  await untilReadiness(gateway, 200)
  const after = () => seen.filter(({ end, at }) => end === 'whole' && at > back)
  await until(() => after().length > 500, 'calls that are admitted again')
  const admittedAfter = (after()[0]?.at ?? back) - back
  await load.stop()
  await endInGoodOrder(gateway)

  const slowest = Math.max(...seen.map(({ ms }) => ms))
  t.diagnostic(`${seen.length} requests: ${JSON.stringify(tally(seen))}`)
  t.diagnostic(
    `slowest ${Math.round(slowest)} ms; answered again ${Math.round(admittedAfter)} ms after its return`,
  )
  assertRightlyRefused(seen)
  const during = seen.filter(({ at }) => at > away && at < back)
  assert.ok(during.some(({ end }) => end === 'broken') && during.some(({ end }) => end === 'refused'))
  // Nothing can be charged, so nothing has an end, but for what was on its way.
  assert.deepEqual(
    during.filter(({ end, at }) => end === 'whole' && at > away + 500),
    [],
  )
  const books = await readBooks(database)
  t.diagnostic(`${books.charges.size} charges, ${books.voids.size} voids`)
  assertChargedOnce(seen, books)
  assertInTime(seen, heldUpMs())
}

describe('a gateway under load whose Postgres is away for seconds', { skip: WITHOUT_POSTGRES }, () => {
  for (const outage of OUTAGES) {
    it(`${outage.name}: no caller waits, and no charge is lost or doubled`, { timeout: 90_000 }, (t) =>
      goThrough(t, outage),
    )
  }
})

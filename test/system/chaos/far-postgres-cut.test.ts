import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { watchHeldUp } from '../../support/held-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until } from '../../support/until.ts'
import { farDatabase } from './far-database.ts'
import { endInGoodOrder, readBooks, startPaidGateway, untilReadiness } from './ledger-gateway.ts'
import {
  assertChargedOnce,
  assertRightlyRefused,
  type Seen,
  startLoad,
  startUnhurriedUpstream,
  tally,
} from './ledger-load.ts'

const ROUND_TRIP_MS = 100
const CUT_MS = 10_000
/** It takes up to 3 s; the rest is for a busy machine. */
const SERVES_WITHIN_MS = 9000
const CALLS = 600

const isWhole = ({ end }: Seen): boolean => end === 'whole'

async function goThrough(t: TestContext): Promise<void> {
  const { near, far, server } = await farDatabase(t, ROUND_TRIP_MS)
  const upstream = await startUnhurriedUpstream()
  t.after(() => upstream.close())
  const gateway = await startPaidGateway(t, upstream, far)
  const heldUpMs = watchHeldUp(t)
  const load = startLoad(gateway)
  const { seen } = load
  await until(() => seen.length > CALLS, 'calls')
  assert.deepEqual(
    seen.filter((call) => !isWhole(call)),
    [],
    'none is refused because the database is far away',
  )

  const served: string[] = []
  for (const fault of ['cut', 'silence'] as const) {
    server[fault]()
    const cutAt = performance.now()
    await untilReadiness(gateway, 503)
    await sleep(CUT_MS - (performance.now() - cutAt))
    server.mend()
    const mendedAt = performance.now()
    const sentAgain = () => seen.filter(({ at, ms }) => at - ms > mendedAt)
    await until(() => sentAgain().filter(isWhole).length > CALLS, 'calls that are served again')
    const first = Math.min(...sentAgain().flatMap((call) => (isWhole(call) ? [call.at - mendedAt] : [])))
    const refused = sentAgain().filter((call) => !isWhole(call))
    const last = Math.max(0, ...refused.map(({ at, ms }) => at - ms - mendedAt))
    served.push(
      `${fault}: the first is served after ${Math.round(first)} ms, the last refused after ${Math.round(last)} ms`,
    )
    assert.ok(last < SERVES_WITHIN_MS + heldUpMs(), `one is refused ${last} ms after a ${fault}`)
    const kinds = new Set(
      seen.filter(({ at }) => at > cutAt && at < mendedAt).map(({ key, end }) => `${end}, ${key !== null}`),
    )
    assert.ok(kinds.has('refused, true') && kinds.has('refused, false'), [...kinds].join())
  }
  await load.stop()
  await endInGoodOrder(gateway)
  t.diagnostic(`${seen.length} calls: ${JSON.stringify(tally(seen))}; ${served.join('; ')}`)
  assertRightlyRefused(seen)
  const books = await readBooks(near)
  t.diagnostic(`${books.charges.size} charges, ${books.voids.size} voids`)
  assertChargedOnce(seen, books)
}

describe('a Postgres far away that is cut off for ten seconds', { skip: WITHOUT_POSTGRES }, () => {
  it(
    'refuses no call while it is there, and afterwards; an error costs no tenant a cent',
    {
      timeout: 180_000,
    },
    (t) => goThrough(t),
  )
})

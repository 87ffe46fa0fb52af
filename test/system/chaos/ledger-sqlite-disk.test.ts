import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type GatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { BALLAST, fillDisk, mayMount, smallDisk } from '../../support/small-disk.ts'
import { until } from '../../support/until.ts'
import { endInGoodOrder, readBooks, startPaidGateway, untilCharged } from './ledger-gateway.ts'
import {
  assertChargedOnce,
  assertInTime,
  assertRightlyRefused,
  startLoad,
  startUnhurriedUpstream,
  tally,
} from './ledger-load.ts'

const FULL_MS = 4000

/** A place for a database where a test may let no more be written. */
interface Disk {
  readonly name: string
  /** The error that SQLite reports. */
  readonly says: RegExp
  open(t: TestContext): Promise<string>
  fill(folder: string, gateway: GatewayProcess): void
  makeRoom(folder: string, gateway: GatewayProcess): void
}

const limitFiles = ({ pid }: GatewayProcess, bytes: string) =>
  execFileSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:unlimited`])

const UNWRITABLE: Disk = {
  name: 'that takes nothing',
  says: /disk I\/O error/,
  async open(t) {
    const { path, remove } = await temporaryFolder()
    t.after(remove)
    return path
  },
  fill: (_folder, gateway) => limitFiles(gateway, '0'),
  makeRoom: (_folder, gateway) => limitFiles(gateway, 'unlimited'),
}

const FULL: Disk = {
  name: 'that is full',
  says: /database or disk is full/,
  open: (t) => smallDisk(t),
  fill: (folder) => fillDisk(folder),
  makeRoom: (folder) => rmSync(join(folder, BALLAST)),
}
async function goThrough(t: TestContext, disk: Disk): Promise<void> {
  const folder = await disk.open(t)
  const upstream = await startUnhurriedUpstream()
  t.after(() => upstream.close())
  const file = join(folder, 'gateway.db')
  const gateway = await startPaidGateway(t, upstream, `sqlite:${file}`)
  const heldUpMs = watchHeldUp(t)
  const load = startLoad(gateway)
  const { seen } = load
  await until(() => seen.length > 300, 'the load')
  assert.ok(seen.every(({ end }) => end === 'whole'))

  disk.fill(folder, gateway)
  await until(() => seen.some(({ code }) => code === 'billing_unavailable'), 'the first refusal')
  const full = performance.now()
  await sleep(FULL_MS)
  const during = seen.filter(({ at }) => at > full + 500)
  const room = performance.now()
  disk.makeRoom(folder, gateway)
  const after = () => seen.filter(({ end, at }) => end === 'whole' && at > room)
  await until(() => after().length > 300, 'calls that are admitted again')
  const admittedAfter = (after()[0]?.at ?? room) - room
  await load.stop()
  const begun = seen.filter(({ end }) => end !== 'refused')
  await untilCharged(
    `sqlite:${file}`,
    begun.map(({ requestId }) => requestId),
  )
  await endInGoodOrder(gateway)

  const slowest = Math.max(...seen.map(({ ms }) => ms))
  t.diagnostic(`${seen.length} requests: ${JSON.stringify(tally(seen))}`)
  t.diagnostic(`slowest ${Math.round(slowest)} ms; answered again ${Math.round(admittedAfter)} ms after`)
  assertRightlyRefused(seen)
  // A full one still takes what fits into the last gap.
  const charged = disk === UNWRITABLE ? during.filter(({ end }) => end === 'whole') : []
  assert.deepEqual(charged, [], 'what cannot be charged has no end')
  assert.ok(during.some(({ end }) => end === 'refused'))
  const away = gateway.logged.filter(({ msg }) => msg === 'store is away')
  // One without an error was slow: on a busy machine it may be.
  const faults = away.flatMap(({ err }) => (err as { message: string } | undefined)?.message ?? [])
  assert.ok(faults.length > 0)
  for (const fault of faults) assert.match(fault, disk.says)
  const db = new DatabaseSync(file, { readOnly: true })
  assert.deepEqual(db.prepare('pragma integrity_check').all().map(Object.values), [['ok']])
  db.close()
  // Where some were written and others not, a process may have given up its lease.
  assertChargedOnce(seen, await readBooks(`sqlite:${file}`, { leasesLeft: disk === FULL }))
  assertInTime(seen, heldUpMs())
}

describe('a gateway under load whose SQLite file is on a disk', () => {
  for (const disk of mayMount() ? [UNWRITABLE, FULL] : [UNWRITABLE]) {
    const name = `${disk.name}: refuses, breaks nothing, and goes on when there is room`
    it(name, { timeout: 90_000 }, (t) => goThrough(t, disk))
  }
})

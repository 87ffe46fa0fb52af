import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'
import {
  backupDatabase,
  openDatabase,
  restoreDatabase,
  SqlIdempotencyStore,
  SqlLedger,
} from '../../../lib/stores/sql/index.ts'
import { charge } from '../../contracts/ledger-money.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { fastFolder } from '../../support/fast-folder.ts'
import { BACKENDS } from './support/postgres-database.ts'
import { open, PATIENT } from './support/temporary-database.ts'

const WITHOUT_TOOLS =
  spawnSync('pg_dump', ['--version']).status === 0 ? false : 'there is no pg_dump on this machine'

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(fastFolder(), 'gateway-backup-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

for (const { name, url, emptyUrl, skip } of BACKENDS) {
  describe(`a backup of ${name}`, { skip: skip || (name === 'Postgres' && WITHOUT_TOOLS) }, () => {
    it('is made while charges are written, and has all that was written before', async (t) => {
      const [folder, from, to] = [await folderOf(t), await url(t), await emptyUrl(t)]
      const db = await openDatabase(from, PATIENT)
      const ledger = new SqlLedger(db)
      await ledger.deposit('acme', 1000n, 'opening', 1)
      for (let n = 0; n < 20; n++) await ledger.settle([charge('acme', 1n)])
      let isOver = false
      const writing = (async () => {
        while (!isOver) await ledger.settle([charge('acme', 1n)])
      })()
      const file = join(folder, 'backup')
      await backupDatabase(from, file, process.env)
      isOver = true
      await writing
      const { charges: all } = await ledger.check()
      await db.destroy()
      assert.deepEqual(await readdir(folder), ['backup'])
      await assert.rejects(backupDatabase(from, file, process.env), /is there already/)

      const began = Date.now()
      await restoreDatabase(to, file, process.env)
      const restored = new SqlLedger(await open(t, to))
      const { violations, charges, spent, restored: note } = await restored.check()
      assert.deepEqual(violations, [])
      assert.ok(charges >= 20 && charges <= all, `${charges} of ${all}`)
      assert.equal(spent, BigInt(charges))
      assert.ok(note && note.at >= began && (note.newestCallAt ?? 0) <= began)
      assert.deepEqual(await restored.settle([charge('acme', 1n)]), ['written'])
      if (name === 'Postgres') {
        const { rows } = await sql<{ reltuples: number }>`
          select reltuples from pg_class where relname = 'wallets'`.execute(await open(t, to))
        assert.ok(Number(rows[0]?.reltuples) > 0, 'Postgres knows nothing of its rows')
      }
    })

    it('replaces what is there, and nothing does that is not one', async (t) => {
      const [folder, place] = [await folderOf(t), await url(t)]
      const fill = async (account: string) => {
        const db = await openDatabase(place, PATIENT)
        await new SqlLedger(db).deposit(account, 7n, 'opening', 1)
        await db.destroy()
      }
      await fill('before')
      const file = join(folder, 'backup')
      await backupDatabase(place, file, process.env)
      await fill('behind')
      const nonsense = join(folder, 'nonsense')
      for (const content of ['nonsense', 'SQLite format 3\0 and more', 'PGDMP and more']) {
        await writeFile(nonsense, content)
        await assert.rejects(restoreDatabase(place, nonsense, process.env), content)
      }
      const former = await restoreDatabase(place, file, process.env)
      const wallets = async (at: string) => {
        const found = await new SqlLedger(await open(t, at)).wallets(['before', 'behind'].map(accountWallet))
        return found.map(({ wallet }) => wallet)
      }
      assert.deepEqual(await wallets(place), ['account:before'])
      if (former === undefined) assert.equal(name, 'Postgres')
      else {
        assert.deepEqual((await wallets(`sqlite:${former}`)).sort(), ['account:before', 'account:behind'])
        const files = await readdir(dirname(former))
        assert.ok(!files.some((each) => /restoring|partial/.test(each)), files.join())
        assert.ok(files.includes(basename(former)))
      }
    })
  })
}

it('a backup does not replace a SQLite file that a process uses', async (t) => {
  const [folder, [sqlite]] = [await folderOf(t), BACKENDS]
  const place = (await sqlite?.url(t)) ?? ''
  const file = join(folder, 'backup')
  await backupDatabase(place, file, process.env)
  const ledger = new SqlLedger(await open(t, place))
  await ledger.deposit('acme', 7n, 'opening', 1)
  await assert.rejects(restoreDatabase(place, file, process.env), /stop all gateways first/)
  assert.deepEqual(await ledger.settle([charge('acme', 1n)]), ['written'])
})

describe('a Postgres that is restored under a running process', {
  skip: BACKENDS[1]?.skip || WITHOUT_TOOLS,
}, () => {
  it('gets the charges and Idempotency-Keys back that the process has written, once, and the check says so', async (t) => {
    const [folder, place] = [await folderOf(t), (await BACKENDS[1]?.url(t)) ?? '']
    const logger = recordingLogger()
    const db = await openDatabase(place, { ...PATIENT, logger })
    t.after(() => db.destroy())
    const [ledger, claims] = [new SqlLedger(db), new SqlIdempotencyStore(db)]
    await ledger.deposit('acme', 1000n, 'opening', 1)
    const first = charge('acme', 1n, { requestId: newRequestId(Date.now()) })
    await ledger.settle([first])
    const file = join(folder, 'backup')
    await backupDatabase(place, file, process.env)

    const claim = { id: 'key', owner: 'req_1', keepUntil: Date.now() + 60_000 }
    const request = { ...claim, fingerprint: 'f', now: Date.now(), leaseUntil: Date.now() + 60_000 }
    assert.equal(await claims.claim(request), undefined)
    const undone = charge('acme', 100n)
    const paid = charge('acme', 2n, { key: 'gone' })
    // As the charges of a pool have it.
    Object.setPrototypeOf(paid, {
      get basis() {
        return '{"items":[2]}'
      },
    })
    Reflect.deleteProperty(paid, 'basis')
    await ledger.settle([paid, charge('acme', 3n, { claim }), undone])
    await ledger.settle([{ ...undone, kind: 'void' }])
    const before = await ledger.check()
    await ledger.reconcile()
    assert.equal((await ledger.check()).restored, undefined)

    await restoreDatabase(place, file, process.env)
    assert.equal((await ledger.check()).charges, 1)
    for (let n = 0; n < 2; n++) await ledger.reconcile()
    const after = await ledger.check()
    assert.deepEqual([after.violations, after.spent, before.spent], [[], 6n, 6n])
    assert.equal(after.restored?.chargesWrittenAgain, 2)
    assert.equal(after.restored?.amountWrittenAgain, 5n)
    assert.deepEqual(after.restored?.unknownKeys, ['gone'])
    const bases = await db.selectFrom('charges').select('basis').orderBy('amount').execute()
    assert.deepEqual(
      bases.map(({ basis }) => basis),
      ['{"items":[]}', '{"items":[2]}', '{"items":[]}'],
    )
    const again = { ...request, owner: 'req_2' }
    assert.equal((await claims.claim(again))?.state, 'completed')
    const levels = logger.lines.map(({ level }) => level).filter((level) => level !== 'info')
    assert.deepEqual(levels, ['error', 'warn'])
  })
})

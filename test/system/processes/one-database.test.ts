import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { type Database, SqlCallStore } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { OWN_PROGRAM_FLAGS } from '../../support/own-program.ts'

const PROGRAM = fileURLToPath(new URL('./database-process.ts', import.meta.url))
const MIGRATIONS = new URL('../../../lib/stores/sql/driver/migrations/', import.meta.url)
const BATCH = 4000

interface Started {
  child: ChildProcess
  lines: AsyncIterator<string>
  begin(): void
}

async function start(t: TestContext, task: 'seed' | 'write', url: string): Promise<Started> {
  const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, PROGRAM, task, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'ready')
  return { child, lines, begin: () => child.stdin.write('go\n') }
}

async function assertSound(db: Database): Promise<void> {
  const { rows } = await sql`pragma integrity_check`.execute(db)
  assert.deepEqual(rows, [{ integrity_check: 'ok' }])
}

for (const { name, url: databaseUrl, emptyUrl, skip } of BACKENDS) {
  describe(`several processes on ${name}`, { skip }, () => {
    it('or threads may open a new database at the same moment', async (t) => {
      const url = await emptyUrl(t)
      const handles = await Promise.all(Array.from({ length: 12 }, () => open(t, url)))
      for (const db of handles) assert.deepEqual(await db.selectFrom('accounts').selectAll().execute(), [])
    })

    it('that start at once on no database migrate it and seed it once between them', async (t) => {
      const url = await emptyUrl(t)
      const started = await Promise.all(Array.from({ length: 5 }, () => start(t, 'seed', url)))
      const exits = started.map(({ child }) => once(child, 'exit'))
      for (const { begin } of started) begin()
      const reports = await Promise.all(
        started.map(
          async ({ lines }) => JSON.parse((await lines.next()).value) as { accounts: number; keys: number },
        ),
      )
      assert.deepEqual(
        await Promise.all(exits),
        started.map(() => [0, null]),
      )
      const sum = (kind: 'accounts' | 'keys') => reports.reduce((total, report) => total + report[kind], 0)
      assert.deepEqual([sum('accounts'), sum('keys')], [50, 50])
      const db = await open(t, url)
      const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(
        db,
      )
      assert.deepEqual(
        rows.map(({ name: done }) => `${done}.ts`),
        readdirSync(MIGRATIONS).sort(),
      )
    })

    it('one killed in the middle of writing leaves a whole database with all that was confirmed', async (t) => {
      const url = await databaseUrl(t)
      const { child, lines, begin } = await start(t, 'write', url)
      begin()
      const confirmed: string[] = []
      while (confirmed.length < 3) confirmed.push((await lines.next()).value)
      // By now it is in the middle of the next batch, which takes it several times as long.
      await setTimeout(50)
      child.kill('SIGKILL')
      await once(child, 'exit')

      const db = await open(t, url)
      const store = new SqlCallStore(db)
      for (const id of confirmed) assert.equal((await store.find(id))?.id, id)
      if (name === 'SQLite') await assertSound(db)
      const { count } = await db
        .selectFrom('calls')
        .select(({ fn }) => fn.countAll<bigint>().as('count'))
        .executeTakeFirstOrThrow()
      assert.equal(Number(count) % BATCH, 0, 'a batch is written whole or not at all')
      assert.ok(Number(count) >= confirmed.length * BATCH)
    })
  })
}

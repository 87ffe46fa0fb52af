import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { before, describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import {
  openDatabase,
  SqlIdempotencyStore,
  SqlLedger,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { emptyDatabaseUrl } from '../../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { OWN_PROGRAM_FLAGS } from '../../support/own-program.ts'
import { type PostgresServer, startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

const PROGRAM = fileURLToPath(new URL('./database-process.ts', import.meta.url))
const LEVELS = ['read committed', 'repeatable read', 'serializable'] as const
const ACCOUNTS = 50

interface Ended {
  readonly code: number | null
  readonly stderr: string
  readonly seeded: { accounts: number; keys: number }
}

/** Starts that many processes, which migrate and seed at the same moment, and waits for their ends. */
async function seedAtOnce(t: TestContext, url: string, processes: number): Promise<Ended[]> {
  const children = Array.from({ length: processes }, () => {
    const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, PROGRAM, 'seed', url])
    t.after(() => child.kill('SIGKILL'))
    return child
  })
  const ends = children.map(async (child) => {
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, stderr, seeded: JSON.parse(stdout.split('\n')[1] || '{"accounts":0,"keys":0}') }
  })
  await Promise.all(children.map((child) => once(child.stdout, 'data')))
  for (const child of children) child.stdin.write('go\n')
  return Promise.all(ends)
}

function assertSeededOnce(ended: readonly Ended[], accounts: number): void {
  for (const { code, stderr } of ended) assert.deepEqual([code, stderr], [0, ''])
  const sum = (kind: 'accounts' | 'keys') => ended.reduce((total, { seeded }) => total + seeded[kind], 0)
  assert.deepEqual([sum('accounts'), sum('keys')], [accounts, accounts])
}

describe('eight processes at once on Postgres', { skip: WITHOUT_POSTGRES, timeout: 180_000 }, () => {
  let postgres: PostgresServer
  const cleanUp = cleaningUp()
  before(async () => {
    postgres = await startPostgres()
    cleanUp.after(() => postgres.close())
  })

  for (const level of LEVELS) {
    it(`come up on ${level}, with the rows seeded once`, async (t) => {
      const url = await postgres.createDatabase()
      const name = new URL(url).pathname.slice(1)
      await postgres.query(`alter database ${name} set default_transaction_isolation = '${level}'`)
      assertSeededOnce(await seedAtOnce(t, url, 8), ACCOUNTS)
    })
  }

  it('take leases, settle and claim on a database that is serializable by default, and see no error of it', async (t) => {
    const url = await postgres.createDatabase()
    const name = new URL(url).pathname.slice(1)
    await postgres.query(`alter database ${name} set default_transaction_isolation = 'serializable'`)
    const handles = await Promise.all(
      Array.from({ length: 4 }, () => openDatabase(url, { logger: recordingLogger(), poolSize: 4 })),
    )
    t.after(() => Promise.all(handles.map((db) => db.destroy())))
    const [first] = handles
    assert.ok(first)
    await seedAccountsAndKeys(first, { accounts: [{ id: 'acme', balance: '100' }], keys: [] })
    const work = handles.flatMap((db, process) =>
      Array.from({ length: 25 }, async (_, i) => {
        const ledger = new SqlLedger(db)
        const claims = new SqlIdempotencyStore(db)
        const lease = `lease-${process}-${i}`
        const requestId = `req-${process}-${i}`
        const claim = { id: `key-${i}`, owner: requestId, fingerprint: 'f', now: Date.now() }
        await claims.claim({ ...claim, leaseUntil: Date.now() + 60_000 })
        await ledger.change(`p${process}`, [
          { lease, wallet: 'account:acme', seq: 1, change: { kind: 'take', need: 1n, want: 1000n } },
        ])
        const draws = [{ lease, wallet: 'account:acme', amount: 10n }] as const
        const charge = { requestId, account: 'acme', key: null, amount: 10n, at: 1, basis: '[]' }
        await ledger.settle([{ kind: 'charge', ...charge, draws, claim: null, entry: null }])
      }),
    )
    await Promise.all(work)
    const { violations, charges, spent } = await new SqlLedger(first).check()
    assert.deepEqual([violations, charges, spent], [[], 100, 1000n])
  })

  it('keep the settings of the URL beside their own', async (t) => {
    const url = new URL(await postgres.createDatabase())
    url.searchParams.set('options', '-c search_path=mine,public')
    for (const readOnly of [false, true]) {
      const db = await openDatabase(url.href, { logger: recordingLogger(), readOnly })
      t.after(() => db.destroy())
      const { rows } = await sql<Record<string, string>>`select current_setting('search_path') as path,
        current_setting('transaction_isolation') as level, current_setting('transaction_read_only') as reading`.execute(
        db,
      )
      assert.deepEqual(rows, [
        { path: 'mine,public', level: 'read committed', reading: readOnly ? 'on' : 'off' },
      ])
    }
  })
})

describe('four processes at once on one SQLite file', { timeout: 120_000 }, () => {
  it('come up, with the rows seeded once', async (t) => {
    const url = await emptyDatabaseUrl(t)
    assertSeededOnce(await seedAtOnce(t, url, 4), ACCOUNTS)
    assertSeededOnce(await seedAtOnce(t, url, 4), 0)
  })
})

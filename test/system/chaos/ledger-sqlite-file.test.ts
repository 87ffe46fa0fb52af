import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, it, type TestContext } from 'node:test'
import { type CleanUp, cleaningUp } from '../../support/clean-up.ts'
import { runToExit, temporaryFolder } from '../../support/gateway-process.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { endInGoodOrder, readBooks, startPaidGateway, writeConfig } from './ledger-gateway.ts'
import { ask, assertChargedOnce, type Seen, startUnhurriedUpstream } from './ledger-load.ts'

/** Root may write what is for reading only, unless it gives that right up. */
const BOUND_BY_MODES = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []

async function folderFor(t: CleanUp): Promise<string> {
  const { path, remove } = await temporaryFolder()
  t.after(remove)
  return path
}

interface UsedDatabase {
  readonly file: string
  readonly seen: readonly Seen[]
}

/** The file of a gateway that has charged some calls and ended, with what its callers saw. */
let used: UsedDatabase
const cleanUp = cleaningUp()
before(async () => {
  const file = join(await folderFor(cleanUp), 'gateway.db')
  const upstream = await startUnhurriedUpstream()
  cleanUp.after(() => upstream.close())
  const gateway = await startPaidGateway(cleanUp, upstream, `sqlite:${file}`)
  const seen = [await ask(gateway), await ask(gateway, { streamed: true })]
  await endInGoodOrder(gateway)
  used = { file, seen }
})

/** Returns a copy of the used database. */
async function usedDatabase(t: TestContext): Promise<UsedDatabase> {
  const file = join(await folderFor(t), 'gateway.db')
  await copyFile(used.file, file)
  return { ...used, file }
}

interface Page {
  readonly at: number
  readonly bytes: Buffer
}

/** Where a table's first page stands in the file, and what it holds. */
async function pageOf(file: string, table: string): Promise<Page> {
  const db = new DatabaseSync(file, { readOnly: true })
  const number = (statement: string) => Number(Object.values(db.prepare(statement).get() ?? {})[0])
  const size = number('pragma page_size')
  const at = (number(`select rootpage from sqlite_master where name = '${table}'`) - 1) * size
  db.close()
  return { at, bytes: (await readFile(file)).subarray(at, at + size) }
}

async function overwrite(file: string, { at, bytes }: Page): Promise<void> {
  const handle = await open(file, 'r+')
  await handle.write(bytes, 0, bytes.length, at)
  await handle.close()
}

const UNUSABLE: readonly {
  readonly name: string
  /** Makes it in a folder; answers where the database should be. */
  readonly make: (t: TestContext, folder: string) => Promise<string>
  readonly says: RegExp
  readonly through?: readonly string[]
}[] = [
  {
    name: 'a file that is no database',
    async make(_t, folder) {
      await writeFile(
        join(folder, 'notes.db'),
        'Somebody’s notes, which are to stay as they are.\n'.repeat(100),
      )
      return join(folder, 'notes.db')
    },
    says: /file is not a database/,
  },
  {
    name: 'a database of which the end is missing',
    async make(t) {
      const { file } = await usedDatabase(t)
      await writeFile(file, (await readFile(file)).subarray(0, 3 * 4096))
      return file
    },
    says: /malformed/,
  },
  {
    name: 'a database whose first page was overwritten',
    async make(t) {
      const { file } = await usedDatabase(t)
      await overwrite(file, { at: 100, bytes: Buffer.alloc(3996, 0xee) })
      return file
    },
    says: /malformed/,
  },
  {
    name: 'a folder',
    async make(_t, folder) {
      await mkdir(join(folder, 'gateway.db'))
      return join(folder, 'gateway.db')
    },
    says: /unable to open database file/,
  },
  {
    name: 'a database for reading only',
    async make(t) {
      const { file } = await usedDatabase(t)
      await chmod(file, 0o444)
      return file
    },
    says: /readonly database/,
    through: BOUND_BY_MODES,
  },
  {
    name: 'a folder for reading only',
    async make(_t, folder) {
      await mkdir(join(folder, 'data'), { mode: 0o555 })
      return join(folder, 'data', 'gateway.db')
    },
    says: /unable to open database file/,
    through: BOUND_BY_MODES,
  },
  {
    name: 'a disk that takes nothing',
    make: async (_t, folder) => join(folder, 'gateway.db'),
    says: /disk I\/O error/,
    through: ['prlimit', '--fsize=0'],
  },
]

describe('a gateway does not start on', () => {
  for (const { name, make, says, through = [] } of UNUSABLE) {
    it(`${name}: one line, and what is there stays as it is`, { timeout: 180_000 }, async (t) => {
      const folder = await folderFor(t)
      const upstream = await startUpstream()
      t.after(() => upstream.close())
      const file = await make(t, folder)
      const isFile = existsSync(file) && name !== 'a folder'
      const before = isFile ? await readFile(file) : undefined
      const GATEWAY_CONFIG = await writeConfig(folder, upstream)
      const env = { GATEWAY_CONFIG, DATABASE_URL: `sqlite:${file}`, LOG_LEVEL: 'warn' }
      const { code, stderr, stdout } = await runToExit(env, through)
      assert.equal(code, 1)
      assert.match(stderr, /^DATABASE_URL: the database cannot be opened \([^\n]+\)\n$/)
      assert.match(stderr, says)
      assert.equal(stdout, '')
      if (before) assert.ok(before.equals(await readFile(file)))
    })
  }
})

describe('a gateway whose SQLite file is damaged where', () => {
  for (const table of ['charges', 'leases'] as const) {
    it(`${table} are: hands no answer over, and charges what it should once the file is whole`, {
      timeout: 180_000,
    }, async (t) => {
      const { file, seen } = await usedDatabase(t)
      const page = await pageOf(file, table)
      await overwrite(file, { at: page.at, bytes: Buffer.alloc(page.bytes.length, 0xee) })
      const upstream = await startUnhurriedUpstream()
      t.after(() => upstream.close())
      const damaged = await startPaidGateway(t, upstream, `sqlite:${file}`)
      const refused = [await ask(damaged), await ask(damaged)]
      assert.deepEqual(
        refused.map(({ status, code }) => [status, code]),
        [
          [503, 'billing_unavailable'],
          [503, 'billing_unavailable'],
        ],
      )
      const [away] = damaged.logged.filter(({ msg }) => msg === 'store is away')
      assert.match((away as { err?: { message?: string } } | undefined)?.err?.message ?? '', /malformed/)
      // Killed: it must not write over what is put back.
      await damaged.stop()
      await overwrite(file, page)

      const gateway = await startPaidGateway(t, upstream, `sqlite:${file}`)
      const after = [await ask(gateway), await ask(gateway, { streamed: true, key: 'k' })]
      assert.ok(after.every(({ end }) => end === 'whole'))
      await endInGoodOrder(gateway)
      const db = new DatabaseSync(file, { readOnly: true })
      assert.deepEqual(db.prepare('pragma integrity_check').all().map(Object.values), [['ok']])
      db.close()
      assertChargedOnce(
        [...seen, ...refused, ...after],
        await readBooks(`sqlite:${file}`, { leasesLeft: true }),
      )
    })
  }
})

import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { sql } from 'kysely'
import {
  type Archive,
  type Database,
  FolderArchive,
  SqlCallStore,
  SqlRetention,
} from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'

const DAY_MS = 86_400_000
const NOW = Date.now()
/** Of the first day there is more than one page. */
const DAYS = [
  [50, 700],
  [49, 3],
  [40, 2],
  [1, 4],
] as const
const KEPT_MS = 30 * DAY_MS

/** The moments of an export at which a process may stand still, or end. */
const MOMENTS = ['the start', 'the first bytes', 'the last bytes', 'the confirmation', 'the end'] as const
type Moment = (typeof MOMENTS)[number]

/** Fills the log; returns the ids that are too old, and the others. */
async function filled(db: Database): Promise<{ old: string[]; young: string[] }> {
  const entries = DAYS.map(([age, count]) =>
    Array.from({ length: count }, (_, i) =>
      entryAt(NOW - age * DAY_MS + i, { account: i % 2 ? 'acme' : 'globex' }),
    ),
  )
  const store = new SqlCallStore(db)
  for (const day of entries) await store.append(day)
  const ids = entries.map((day) => day.map(({ id }) => id))
  return { old: ids.slice(0, -1).flat().sort(), young: (ids.at(-1) as string[]).sort() }
}

/** An archive that does something at one moment of its first write. */
function interrupted(archive: Archive, moment: Moment, interrupt: () => Promise<void>): Archive {
  let writes = 0
  return {
    async write(name, chunks, confirm) {
      if (++writes > 1) return archive.write(name, chunks, confirm)
      const reach = async (reached: Moment) => {
        if (reached === moment) await interrupt()
      }
      await reach('the start')
      async function* passed() {
        let count = 0
        for await (const chunk of chunks) {
          yield chunk
          if (++count === 1) await reach('the first bytes')
        }
        await reach('the last bytes')
      }
      await archive.write(name, passed(), async () => {
        await confirm()
        await reach('the confirmation')
      })
      await reach('the end')
    },
  }
}

async function exportedIn(folder: string): Promise<string[]> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => /\.\w+$/.test(name))
  assert.deepEqual(
    names.filter((name) => !name.endsWith('.jsonl.gz')),
    [],
  )
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name))))
  const lines = texts.flatMap((text) => gunzipSync(text).toString().split('\n').filter(Boolean))
  return lines.map((line) => (JSON.parse(line) as { id: string }).id).sort()
}

async function idsIn(db: Database): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`select id from calls order by id`.execute(db)
  return rows.map(({ id }) => id)
}

function retentionOf(
  t: TestContext,
  db: Database,
  archive: Archive,
  logger = recordingLogger(),
): SqlRetention {
  const retention = new SqlRetention(db, { logger, calls: KEPT_MS, archive })
  t.after(() => retention.close())
  return retention
}

for (const { name, url, skip } of BACKENDS) {
  describe(`an export in ${name}`, { skip }, () => {
    for (const moment of MOMENTS) {
      it(`that another process takes over at ${moment} has each row once, in whichever process it goes on`, async (t) => {
        const folder = await temporaryFolder()
        t.after(() => folder.remove())
        const db = await open(t, await url(t))
        const { old, young } = await filled(db)
        const archive = new FolderArchive(folder.path)
        // It stands still for so long that another one does all the work.
        const paused = interrupted(archive, moment, async () => {
          await sql`update upkeep set until = 0`.execute(db)
          assert.equal((await retentionOf(t, db, archive).run()).elsewhere, false)
        })
        await assert.rejects(retentionOf(t, db, paused).run(), { name: 'UpkeepLost' })
        await retentionOf(t, db, archive).run()
        assert.deepEqual(await exportedIn(folder.path), old)
        assert.deepEqual(await idsIn(db), young)
      })

      it(`that fails at ${moment} is taken up by the next run, and has each row once`, async (t) => {
        const folder = await temporaryFolder()
        t.after(() => folder.remove())
        const db = await open(t, await url(t))
        const { old, young } = await filled(db)
        const archive = new FolderArchive(folder.path)
        const failing = interrupted(archive, moment, () => Promise.reject(new Error('the bucket is away')))
        await assert.rejects(retentionOf(t, db, failing).run(), /the bucket is away/)
        assert.deepEqual(await idsIn(db), [...old, ...young].sort())
        await retentionOf(t, db, archive).run()
        assert.deepEqual(await exportedIn(folder.path), old)
        assert.deepEqual(await idsIn(db), young)
      })
    }

    it('that two processes begin at the same time has each row once', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const db = await open(t, await url(t))
      const { old, young } = await filled(db)
      const runs = [1, 2, 3].map(() => retentionOf(t, db, new FolderArchive(folder.path)).run())
      const done = await Promise.all(runs)
      assert.equal(done.filter(({ elsewhere }) => !elsewhere).length, 1)
      assert.deepEqual(await exportedIn(folder.path), old)
      assert.deepEqual(await idsIn(db), young)
    })

    it('that its archive refuses unread ends nothing else when it is closed, or the database fails', async (t) => {
      const db = await open(t, await url(t))
      await filled(db)
      const refusing: Archive = { write: () => Promise.reject(new Error('no such folder')) }
      const retention = retentionOf(t, db, refusing)
      await assert.rejects(retention.run(), /no such folder/)
      await retention.close()
      // It had begun to read the next page.
      await sleep(100)
    })

    it('of one run is not begun again while it goes on', async (t) => {
      const db = await open(t, await url(t))
      await filled(db)
      const logger = recordingLogger()
      const slow: Archive = {
        async write(_name, chunks, confirm) {
          for await (const _ of chunks);
          await sleep(600)
          await confirm()
        },
      }
      const retention = retentionOf(t, db, slow, logger)
      await retention.run()
      await retention.close()
      assert.deepEqual(logger.lines, [])
    })
  })
}

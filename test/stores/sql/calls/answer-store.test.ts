import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../../../lib/core/call/index.ts'
import { type Database, SqlAnswerStore, SqlCallStore } from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

const HOUR = 3_600_000

async function parts(db: Database): Promise<string[]> {
  const rows = await db.selectFrom('answers').select(['id', 'part']).orderBy('id').orderBy('part').execute()
  return rows.map(({ id, part }) => `${id} ${part}`)
}

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)

  describe(`answers that are kept apart: ${name}`, { skip }, () => {
    it('come in parts that hold up no other writer of a file for long, and take a far database few round trips', async () => {
      const { partBytes } = new SqlAnswerStore((await emptied()).db)
      assert.equal(partBytes, name === 'SQLite' ? 131_072 : 1_048_576)
    })

    it('are read with their entry, byte by byte, and never by a list', async () => {
      const { db } = await emptied()
      const [answers, calls] = [new SqlAnswerStore(db), new SqlCallStore(db)]
      const bytes = Buffer.from('a\u0000ü😀'.repeat(50))
      const entry = entryAt(Date.now(), { response_body_parts: 60 })
      for (let part = 0; part < 60; part++) {
        const piece = bytes.subarray(part * 10, part === 59 ? undefined : part * 10 + 10)
        await answers.write(entry.id, part, piece)
        // A repetition changes nothing.
        await answers.write(entry.id, part, Buffer.from('other'))
      }
      await calls.append([entry])
      const { response_body_parts: _, ...shown } = entry
      assert.deepEqual(await calls.find(entry.id), { ...shown, response_body: bytes.toString() })
      assert.deepEqual((await calls.list({ limit: 5 })).entries, [shown])
    })

    it('belong to no call before their entry points at them, and an earlier entry has its own', async () => {
      const { db } = await emptied()
      const [answers, calls] = [new SqlAnswerStore(db), new SqlCallStore(db)]
      const [old, refused, cut] = [
        entryAt(Date.now(), { response_body: 'old' }),
        entryAt(Date.now()),
        entryAt(Date.now(), { response_body_parts: 2 }),
      ]
      for (const { id } of [old, refused, cut]) await answers.write(id, 0, Buffer.from('unpaid'))
      assert.equal(await calls.find(old.id), undefined)
      await calls.append([old, refused, cut])
      const bodies = [old, refused, cut].map(async ({ id }) => (await calls.find(id))?.response_body)
      assert.deepEqual(await Promise.all(bodies), ['old', null, null])
      await answers.drop(refused.id)
      assert.deepEqual(await parts(db), [`${old.id} 0`, `${cut.id} 0`].sort())
    })

    it('go with their entries, and those without one when no call can be about to write it', async () => {
      const { db } = await emptied()
      const [answers, calls] = [new SqlAnswerStore(db), new SqlCallStore(db)]
      const now = Date.now()
      const pruned = entryAt(now - 40 * HOUR, { response_body_parts: 20 })
      const kept = entryAt(now - 5 * HOUR, { response_body_parts: 20 })
      const [orphan, ancient, session] = [27 * HOUR, 90 * HOUR, 24 * HOUR].map((ago) =>
        newRequestId(now - ago),
      )
      for (const id of [pruned.id, kept.id, orphan!, ancient!, session!]) {
        for (let part = 0; part < 20; part++) await answers.write(id, part, Buffer.from('x'))
      }
      await calls.append([pruned, kept])
      assert.equal(await calls.prune(now - 30 * HOUR, 500), 1)
      const left = new Set((await parts(db)).map((row) => row.split(' ')[0]))
      assert.deepEqual([...left].sort(), [kept.id, session].sort())
      assert.equal((await calls.find(kept.id))?.response_body, 'x'.repeat(20))
    })
  })
}

import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { listPage, pageMembers } from '../../../lib/core/json-api/index.ts'

const MAX_BYTES = 1024 * 1024

it('a list is paged by bytes as well as by number, and its pages together contain every row once', () => {
  const sizes = fc.array(fc.oneof(fc.nat(300), fc.nat(400_000), fc.constant(2_000_000)), { maxLength: 20 })
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 10 }), (lengths, limit) => {
      const all = lengths.map((length, i) => ({ id: `row-${String(i).padStart(3, '0')}`, length }))
      const seen: string[] = []
      for (let from = 0, cursor: string | null = ''; cursor !== null; ) {
        const rest = all.slice(from, from + limit + 1)
        const page = listPage(rest, limit, ({ id, length }) => ({ id, text: 'x'.repeat(length) }))
        const bytes = Buffer.byteLength(JSON.stringify(page.data))
        assert.ok(page.data.length <= limit)
        assert.ok(
          bytes <= MAX_BYTES + 500 || page.data.length === 1,
          `${page.data.length} rows, ${bytes} bytes`,
        )
        for (const { id } of page.data) seen.push(id)
        cursor = page.next_cursor
        if (cursor === null) break
        const last = Buffer.from(cursor, 'base64url').toString()
        from = all.findIndex(({ id }) => id === last) + 1
      }
      assert.deepEqual(
        seen,
        all.map(({ id }) => id),
      )
    }),
    { numRuns: 25 },
  )
})

it('a page contains at most one MiB of rows, or one larger row', () => {
  const bytesOf = (row: object) => Buffer.byteLength(JSON.stringify(row))
  const row = (id: string, bytes: number) => ({
    id,
    text: 'é'.repeat((bytes - bytesOf({ id, text: '' })) / 2),
  })
  const sizes = (rows: { id: string }[]) => listPage(rows, 9, (each) => each).data.map(bytesOf)
  for (const first of [100, 500_000, MAX_BYTES - 100]) {
    const rest = MAX_BYTES - first
    assert.deepEqual(sizes([row('a', first), row('b', rest)]), [first, rest])
    assert.deepEqual(sizes([row('a', first), row('b', rest), row('c', 100)]), [first, rest])
    assert.deepEqual(sizes([row('a', first), row('b', rest + 2)]), [first])
  }
  assert.deepEqual(sizes([row('a', MAX_BYTES + 2), row('b', 100)]), [MAX_BYTES + 2])
})

it('a cursor can be any valid id, unless a list restricts it', () => {
  const query = z.object(pageMembers())
  const read = (text: string) => query.safeParse({ cursor: text }).data?.cursor
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), (id) => {
      assert.equal(read(Buffer.from(id).toString('base64url')), id)
    }),
  )
  for (const none of ['', '=', 'a', 'YQ==', '_w'])
    assert.equal(query.safeParse({ cursor: none }).success, false)
})

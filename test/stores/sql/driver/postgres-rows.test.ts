import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { PoolClient } from 'pg'
import type { Cell } from '../../../../lib/stores/sql/driver/columns.ts'
import { PostgresBatch } from '../../../../lib/stores/sql/driver/postgres/postgres-batch.ts'
import { arraysOf } from '../../../../lib/stores/sql/driver/postgres/postgres-values.ts'
import { RowStatement } from '../../../../lib/stores/sql/driver/row-statement.ts'

/** Dimensions, whether null may be there, the type, how many, and the index of the first. */
const header = (type: number, length: number) => [
  0,
  0,
  0,
  1,
  0,
  0,
  0,
  1,
  0,
  0,
  0,
  type,
  0,
  0,
  0,
  length,
  0,
  0,
  0,
  1,
]
const NULL = [255, 255, 255, 255]

describe('columns of rows as Postgres takes them in binary', () => {
  it('are arrays of texts, by their bytes, and of whole numbers of eight bytes', () => {
    const rows: Cell[][] = [
      ['é', 5n],
      [null, null],
      ['', -1],
    ]
    assert.deepEqual(
      arraysOf(['text', 'bigint'], rows).map((array) => [...array]),
      [
        [...header(25, 3), 0, 0, 0, 2, 0xc3, 0xa9, ...NULL, 0, 0, 0, 0],
        [...header(20, 3), 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, ...NULL, 0, 0, 0, 8, ...Array(8).fill(255)],
      ],
    )
  })

  it('refuse a figure that does not fit 64 bits', () => {
    assert.throws(() => arraysOf(['bigint'], [[2n ** 63n]]), RangeError)
  })
})

const WRITE = RowStatement.insert('things', { id: 'text', size: 'bigint' }, '')
const OTHER = RowStatement.insert('others', { id: 'text' }, '')

/** Hands rows to a connection; answers what it was asked, in order. */
function handed(writes: Parameters<typeof PostgresBatch.run>[1], parsed = new Set<string>()) {
  const asked: unknown[][] = []
  const note =
    (what: string) =>
    (...[given]: unknown[]) =>
      void asked.push([what, given])
  const connection = {
    stream: { cork: note('cork'), uncork: note('uncork') },
    close: note('close'),
    parse: note('parse'),
    bind: note('bind'),
    execute: note('execute'),
    sync: note('sync'),
  }
  let batch: PostgresBatch | undefined
  const client = {
    query: (submitted: PostgresBatch) => {
      batch = submitted
      submitted.submit(connection as never)
    },
  } as unknown as PoolClient
  const done = PostgresBatch.run(client, writes, parsed)
  return { asked, batch: batch as unknown as PostgresBatch, done, parsed }
}

const kinds = (asked: readonly unknown[][]) => asked.map(([kind]) => kind)
const boundTo = (asked: readonly unknown[][]) =>
  asked.flatMap(([kind, given]) =>
    kind === 'bind' ? [given as { portal: string; statement: string; values: Buffer[] }] : [],
  )

describe('rows that are handed to Postgres together', () => {
  it('are parsed once for a connection, bound, and then done in their order, with one end', async () => {
    const writes = [
      { statement: WRITE, rows: [['a', 1n]] },
      { statement: OTHER, rows: [['b']] },
    ]
    const { asked, batch, done, parsed } = handed(writes)
    const each = ['close', 'parse', 'bind']
    assert.deepEqual(kinds(asked), ['cork', ...each, ...each, 'execute', 'execute', 'sync', 'uncork'])
    assert.deepEqual(
      boundTo(asked).map(({ portal, statement }) => [portal, statement]),
      [
        ['portal_0', WRITE.name],
        ['portal_1', OTHER.name],
      ],
    )
    assert.deepEqual(asked[2], ['parse', { name: WRITE.name, text: WRITE.postgresOrFail, types: [] }])
    assert.deepEqual(
      asked.filter(([kind]) => kind === 'execute').map(([, given]) => given),
      [{ portal: 'portal_0' }, { portal: 'portal_1' }],
    )
    batch.handleReadyForQuery()
    await done
    assert.deepEqual([...parsed], [WRITE.name, OTHER.name])
    assert.deepEqual(kinds(handed(writes, parsed).asked), [
      'cork',
      'bind',
      'bind',
      'execute',
      'execute',
      'sync',
      'uncork',
    ])
  })

  it('that fail are parsed anew the next time, and others of the connection are not', async () => {
    const { batch, done, parsed } = handed([{ statement: WRITE, rows: [['a', 1n]] }], new Set(['other']))
    const failed = assert.rejects(done, /division by zero/)
    batch.handleError(new Error('division by zero'))
    await failed
    assert.deepEqual([...parsed], ['other'])
  })

  it('are bound two million characters at a time, in their order', () => {
    const million = 'x'.repeat(1_000_000)
    const rowsOf = (texts: readonly string[]) => texts.map((text, i) => [text, i])
    const split = (...texts: string[]) =>
      boundTo(handed([{ statement: WRITE, rows: rowsOf(texts) }]).asked).map(({ values }) => values[1])
    const figures = (...rows: number[]) =>
      arraysOf(
        ['bigint'],
        rows.map((row) => [row]),
      )[0]
    assert.deepEqual(split(million, million), [figures(0, 1)])
    assert.deepEqual(split(million, million, 'x', 'x'), [figures(0, 1), figures(2, 3)])
    assert.deepEqual(split(`${million}${million}x`, 'x', million, million), [
      figures(0),
      figures(1, 2),
      figures(3),
    ])
    assert.deepEqual(split('x'), [figures(0)])
  })
})

describe('a statement over rows', () => {
  const columns = { id: 'text', cost: 'bigint' } as const

  it('locks what it finds in Postgres, in the order of the ids, where it is to', () => {
    const text = 'select found.* from given join things as found on found.id = given.id'
    const given = 'with given(id,cost) as (select * from unnest($1::text[],$2::bigint[]))'
    const plain = RowStatement.select(columns, text)
    const locking = RowStatement.select(columns, text, { locks: true })
    assert.equal(plain.postgres, `${given} ${text}`)
    assert.equal(locking.postgres, `${given} ${text} order by found.id for update of found`)
    assert.equal(locking.sqlite, `with given as (select ?1 as id,?2 as cost) ${text}`)
    assert.equal(locking.postgresOrFail, locking.postgres, 'it may find fewer')
    const locked =
      'from (select given.* from given join things as found on found.id = given.id order by found.id for update of found) as given'
    const update = RowStatement.update('things', columns, 'spent = given.cost', 'found.id = given.id')
    const onOneLine = (text: string) => text.replaceAll(/\s+/g, ' ')
    assert.ok(onOneLine(update.postgres).includes(locked), update.postgres)
    assert.equal(update.sqlite, 'update things as found set spent = ?2 where found.id = ?1')
    const removal = RowStatement.delete('things', columns, 'found.id = given.id')
    assert.ok(onOneLine(removal.postgres).includes(locked.replace('from ', 'using ')), removal.postgres)
    assert.equal(removal.sqlite, 'delete from things as found where found.id = ?1')
  })

  it('writes new rows in the order of their ids, and fails where one is left out that may not be', () => {
    const insert = RowStatement.insert('things', columns, 'on conflict (id) do nothing')
    assert.ok(
      insert.postgres.endsWith(
        'from given where true order by given.id collate "C" on conflict (id) do nothing',
      ),
    )
    assert.match(
      insert.postgresOrFail,
      /returning 1\)\s+select 1 \/ \(count\(\*\) = cardinality\(\$1::text\[\]\)\)/,
    )
    assert.equal(insert.loose, false)
    const loose = RowStatement.insert('things', columns, '', { loose: true })
    assert.equal(loose.postgresOrFail, loose.postgres)
  })

  it('has a name of its own', () => {
    const names = [1, 2, 3].map(() => RowStatement.delete('things', columns, 'true').name)
    assert.equal(new Set(names).size, 3)
  })
})

import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { SqliteStatements } from '../../../../lib/stores/sql/driver/sqlite/sqlite-statements.ts'

function opened(t: TestContext, most = 10) {
  const db = new DatabaseSync(':memory:')
  t.after(() => db.close())
  db.exec('create table things (id text, small integer, large bigint, any)')
  const prepare = t.mock.method(db, 'prepare')
  return { statements: new SqliteStatements(db, most), prepared: () => prepare.mock.callCount() }
}

const INSERT = 'insert into things (id, small, large, any) values (?1, ?2, ?3, ?4)'

describe('statements of SQLite', () => {
  it('read a column of integers as numbers, and any other whole number as a bigint', (t) => {
    const { statements } = opened(t)
    assert.deepEqual(statements.run(INSERT, ['one', 1, 2n, 3]), { rows: [], changes: 1n })
    const { rows, changes } = statements.run('select *, count(*) as count from things', [])
    assert.deepEqual({ ...rows[0] }, { id: 'one', small: 1, large: 2n, any: 3n, count: 1n })
    assert.equal(changes, undefined)
    statements.run(INSERT, ['none', null, null, null])
    assert.deepEqual(
      { ...statements.run(`select * from things where id = 'none'`, []).rows[0] },
      {
        id: 'none',
        small: null,
        large: null,
        any: null,
      },
    )
  })

  it('keep whole numbers whole, and fractions as they are', (t) => {
    const { statements } = opened(t)
    for (const value of [3, 0.5, 2 ** 60]) statements.run(INSERT, ['x', null, null, value])
    const { rows } = statements.run('select typeof(any) as type from things', [])
    assert.deepEqual(
      rows.map(({ type }) => type),
      ['integer', 'real', 'real'],
    )
  })

  it('run once for each row that they are given', (t) => {
    const { statements } = opened(t)
    const rows = [
      ['a', 1, 1n, null],
      ['b', 2, 2n, null],
    ]
    assert.equal(statements.run(INSERT, [rows]).changes, 2n)
    const found = statements.run('select small from things where id = ?1', [[['b'], ['none'], ['a']]])
    assert.deepEqual(
      found.rows.map(({ small }) => small),
      [2, 1],
    )
    assert.equal(
      statements.runEach('update things set any = ?2 where id = ?1', [
        ['a', 5n],
        ['none', 6n],
      ]),
      1,
    )
    assert.equal(statements.runEach(INSERT, []), 0)
  })

  it('are prepared once, those that were used last', (t) => {
    const { statements, prepared } = opened(t, 2)
    const run = (...numbers: number[]) => {
      for (const number of numbers) statements.run(`select ${number}`, [])
      return prepared()
    }
    assert.equal(run(1, 1, 2, 1, 2), 2)
    assert.equal(run(1, 3), 3)
    assert.equal(run(1, 3), 3, 'the second was used the longest ago')
    assert.equal(run(2), 4)
    assert.equal(run(3), 4)
    assert.equal(run(1), 5)
  })

  it('without parameters are run for what they do', (t) => {
    const { statements } = opened(t)
    statements.execute('begin')
    statements.run(INSERT, ['undone', null, null, null])
    statements.execute('rollback')
    assert.deepEqual(statements.run('select id from things', []).rows, [])
  })
})

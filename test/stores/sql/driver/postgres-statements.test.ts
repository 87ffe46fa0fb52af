import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { PoolClient, QueryConfig } from 'pg'
import { PostgresClient } from '../../../../lib/stores/sql/driver/postgres/postgres-client.ts'
import { PostgresStatements } from '../../../../lib/stores/sql/driver/postgres/postgres-statements.ts'

const namesOf = (statements: PostgresStatements, text: string, times: number) =>
  Array.from({ length: times }, () => statements.nameOf(text))

describe('the name of a statement', () => {
  it('is given at the tenth time, and stays', () => {
    const statements = new PostgresStatements()
    assert.deepEqual(namesOf(statements, 'select 1', 12), [...Array(9).fill(undefined), 's0', 's0', 's0'])
    assert.deepEqual(namesOf(statements, 'select 2', 10).at(-1), 's1')
    assert.equal(statements.nameOf('select 1'), 's0')
  })

  it('is given to none of more than 4000 characters', () => {
    const statements = new PostgresStatements()
    assert.equal(namesOf(statements, 'x'.repeat(4000), 10).at(-1), 's0')
    assert.deepEqual(new Set(namesOf(statements, 'x'.repeat(4001), 30)), new Set([undefined]))
  })

  it('is given to two hundred', () => {
    const statements = new PostgresStatements()
    const names = Array.from({ length: 201 }, (_, i) => namesOf(statements, `select ${i}`, 10).at(-1))
    assert.deepEqual([names[199], names[200]], ['s199', undefined])
    assert.equal(new Set(names).size, 201)
    assert.equal(statements.nameOf('select 7'), 's7')
  })

  it('is counted for a thousand at a time: more begin anew', () => {
    const statements = new PostgresStatements()
    namesOf(statements, 'often', 9)
    for (let i = 0; i < 999; i++) statements.nameOf(`select ${i}`)
    statements.nameOf('one more')
    assert.deepEqual(namesOf(statements, 'often', 10), [...Array(9).fill(undefined), 's0'])
    const fewer = new PostgresStatements()
    namesOf(fewer, 'often', 9)
    for (let i = 0; i < 998; i++) fewer.nameOf(`select ${i}`)
    fewer.nameOf('select 0')
    assert.equal(fewer.nameOf('often'), 's0')
  })
})

/** A connection that notes what it is asked, and answers when the test says. */
function connection(t: TestContext, timeoutMs = 1000) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked: QueryConfig[] = []
  const released: unknown[] = []
  const world = { destroyed: 0, answer: async (): Promise<unknown> => ({ rows: [] }) }
  const pooled = {
    query: (config: QueryConfig) => {
      asked.push(config)
      return world.answer()
    },
    release: (destroy: unknown) => void released.push(destroy),
    connection: { stream: { destroy: () => void world.destroyed++ } },
  } as unknown as PoolClient
  const open = () => new PostgresClient(pooled, timeoutMs, new PostgresStatements())
  return { asked, released, world, client: open() }
}

const turn = () => new Promise(setImmediate)

describe('a connection to Postgres', () => {
  it('names a statement with parameters that comes often, and no other', async (t) => {
    const { asked, client } = connection(t)
    for (let times = 0; times < 10; times++) await client.query('select $1', ['x'])
    assert.deepEqual(asked[0], { text: 'select $1', values: ['x'] })
    assert.deepEqual(asked[9], { text: 'select $1', values: ['x'], name: 's0' })
    for (let times = 0; times < 12; times++) await client.query('begin', [])
    assert.deepEqual(asked.at(-1), { text: 'begin', values: [] })
  })

  it('is given back to be used again, unless it is to be destroyed', async (t) => {
    const { released, client } = connection(t)
    await client.query('select 1', [])
    client.release()
    client.release(true)
    assert.deepEqual(released, [false, true])
  })

  it('is not used again once a kept statement has gone out of date', async (t) => {
    for (const [code, destroyed] of [
      ['0A000', true],
      ['23505', false],
    ] as const) {
      const { released, world, client } = connection(t)
      world.answer = () => Promise.reject(Object.assign(new Error('refused'), { code }))
      await assert.rejects(client.query('select 1', []), { code })
      client.release()
      assert.deepEqual(released, [destroyed], code)
      t.mock.timers.reset()
    }
  })

  it('ends where a statement is not answered in time, and fails at once whatever is asked next', async (t) => {
    const { asked, released, world, client } = connection(t)
    let fail = (_error: Error) => {}
    world.answer = () =>
      new Promise((_, reject) => {
        fail = reject
      })
    const answer = assert.rejects(client.query('select 1', []), {
      name: 'DatabaseTimeout',
      message: 'Postgres did not answer within 1000 ms',
    })
    t.mock.timers.tick(999)
    await turn()
    await turn()
    assert.equal(world.destroyed, 0)
    t.mock.timers.tick(1)
    await turn()
    await turn()
    assert.equal(world.destroyed, 1)
    fail(new Error('Connection terminated'))
    await answer
    await assert.rejects(client.query('rollback', []), { name: 'DatabaseTimeout' })
    assert.equal(asked.length, 1)
    client.release()
    assert.deepEqual(released, [true])
  })

  it('stays where the answer came in time, and where it was read late', async (t) => {
    const { world, client } = connection(t)
    await client.query('select 1', [])
    t.mock.timers.tick(5000)
    await turn()
    let answer = (_: unknown) => {}
    world.answer = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    const asked = client.query('select 2', [])
    t.mock.timers.tick(1000)
    // It has come by the turn in which it would be given up.
    answer({ rows: [] })
    await asked
    await turn()
    await turn()
    assert.equal(world.destroyed, 0)
    world.answer = async () => ({ rows: [] })
    await client.query('select 3', ['x'])
  })

  it('streams nothing', (t) => {
    const { client } = connection(t)
    assert.throws(() => client.query({}), /not streamed: page through them with a limit/)
  })
})

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { emptyPostgresUrl, sharedPostgres } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

/** Opens a database with a search path; answers the schemas in which it has its tables of calls. */
async function schemasOf(t: TestContext, url: string): Promise<string> {
  const db = await open(t, url)
  const { rows } = await sql<{ schema: string }>`
    select relnamespace::regnamespace::text as schema from pg_class where oid = 'calls'::regclass`.execute(db)
  return rows.map(({ schema }) => schema).join()
}

function withPath(url: string, path: string): string {
  return `${url}?options=${encodeURIComponent(`-c search_path=${path}`)}`
}

describe('schemas of one Postgres', { skip: WITHOUT_POSTGRES }, () => {
  it('hold a gateway each', async (t) => {
    const url = await emptyPostgresUrl()
    await (await sharedPostgres()).query('create schema one; create schema two', url)
    for (const path of ['one', 'two', 'public']) assert.equal(await schemasOf(t, withPath(url, path)), path)
    for (const path of ['one', 'two']) assert.equal(await schemasOf(t, withPath(url, path)), path)
  })

  it('are not mixed up when one is made that comes before the one of the tables', async (t) => {
    const url = await emptyPostgresUrl()
    assert.equal(await schemasOf(t, withPath(url, 'later,public')), 'public')
    await (await sharedPostgres()).query('create schema later', url)
    assert.equal(await schemasOf(t, withPath(url, 'later,public')), 'public')
  })
})

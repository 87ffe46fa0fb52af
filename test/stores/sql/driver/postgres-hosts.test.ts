import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { PostgresHosts } from '../../../../lib/stores/sql/driver/postgres/postgres-hosts.ts'
import { openDatabase } from '../../../../lib/stores/sql/index.ts'
import { freePort } from '../../../support/free-port.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { postgresUrl } from '../support/postgres-database.ts'

describe('a postgres:// URL with several servers', () => {
  it('names each with the same login, database and settings', () => {
    const hosts = new PostgresHosts(
      'postgres://me:p%40ss@a:1,[::1]:2,c/db?sslmode=require&target_session_attrs=read-write&x=y',
    )
    const seen = Array.from({ length: hosts.count + 1 }, () => {
      const { current } = hosts
      hosts.leave(current)
      hosts.leave(current)
      return current
    })
    const rest = '/db?sslmode=require&x=y'
    const urls = ['a:1', '[::1]:2', 'c', 'a:1'].map((host) => `postgres://me:p%40ss@${host}${rest}`)
    assert.deepEqual(seen, urls, 'a server that failed for two at once is left once')
  })

  it('wants one that takes writes, unless it says otherwise', () => {
    const mustWrite = (url: string) => new PostgresHosts(url).mustWrite
    assert.equal(mustWrite('postgres://a,b/db'), true)
    assert.equal(mustWrite('postgres://a,b/db?target_session_attrs=any'), false)
    assert.equal(mustWrite('postgres://a/db'), false)
    assert.equal(mustWrite('postgres://a/db?target_session_attrs=primary'), true)
    assert.throws(
      () => mustWrite('postgres://a/db?target_session_attrs=standby'),
      /must be one of any, primary, read-write/,
    )
  })

  it('leads to the one that answers', { skip: WITHOUT_POSTGRES }, async (t) => {
    const url = (await postgresUrl()).replace('127.0.0.1', `127.0.0.1:${await freePort()},127.0.0.1`)
    const db = await openDatabase(url)
    t.after(() => db.destroy())
    const { rows } = await sql<{ one: number }>`select 1 as one`.execute(db)
    assert.deepEqual(rows, [{ one: 1 }])
  })
})

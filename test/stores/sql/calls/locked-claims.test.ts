import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { BrokenRecord } from '../../../../lib/core/store-guard/index.ts'
import { openDatabase, SqlIdempotencyStore } from '../../../../lib/stores/sql/index.ts'
import { recordingLogger } from '../../../support/app-server.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { untilAsync } from '../../../support/until.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

describe('records of keys that another connection has locked', { skip: WITHOUT_POSTGRES }, () => {
  it('answer for themselves at once, and keep no other', async (t) => {
    const url = await postgresUrl()
    const operator = await open(t, url)
    const db = await openDatabase(url, { logger: recordingLogger(), lockTimeoutMs: 50 })
    t.after(() => db.destroy())
    const store = new SqlIdempotencyStore(db)
    const [now, leaseUntil] = [Date.now(), Date.now() + 60_000]
    const claim = (id: string, owner = `owner of ${id}`) =>
      store.claim({ id, owner, fingerprint: 'f', now, leaseUntil })
    const held = ['ours', 'locked', 'run', 'old'].map((id) => ({ id, owner: `owner of ${id}` }))
    const [ours, locked, run, old] = held
    for (const { id } of held) assert.equal(await claim(id), undefined)
    assert.equal(await store.complete(run!, leaseUntil), true)
    await sql`update idempotency set expires_at = 1 where id = 'old'`.execute(operator)

    await operator.transaction().execute(async (trx) => {
      await sql`select 1 from idempotency where id <> 'ours' for update`.execute(trx)
      const states = ['locked', 'run', 'old'].map(async (id) => (await claim(id, 'another'))?.state)
      assert.deepEqual(await Promise.all(states), ['running', 'completed', 'running'])
      assert.equal(await claim('new'), undefined)
      const gone = { id: 'locked', owner: 'another' }
      assert.deepEqual(await store.renew([locked!, ours!, gone], leaseUntil + 1), [undefined, true, false])
      await assert.rejects(store.release(locked!), BrokenRecord)
      await assert.rejects(store.complete(old!, leaseUntil), BrokenRecord)
      await store.release(ours!)
    })
    assert.deepEqual(await store.renew([locked!], leaseUntil), [true])
    await store.release(locked!)
    assert.equal(await claim('locked', 'another'), undefined)
  })

  it('cost no other claim of their group anything, nor does one that Postgres refuses', async (t) => {
    const url = await postgresUrl()
    const operator = await open(t, url)
    const db = await openDatabase(url, { logger: recordingLogger(), poolSize: 1, lockTimeoutMs: 1000 })
    t.after(() => db.destroy())
    const store = new SqlIdempotencyStore(db)
    const [now, leaseUntil] = [Date.now(), Date.now() + 60_000]
    const claim = (id: string, owner: string, fingerprint = 'f') =>
      store.claim({ id, owner, fingerprint, now, leaseUntil })
    for (const id of ['locked', 'run', 'old']) await claim(id, 'first')
    assert.equal(await store.complete({ id: 'run', owner: 'first' }, leaseUntil, 'answer'), true)
    await sql`update idempotency set expires_at = 1 where id = 'old'`.execute(operator)
    await sql`alter table idempotency add constraint no_bad_one check (id <> 'bad')`.execute(operator)

    await operator.transaction().execute(async (trx) => {
      await sql`select 1 from idempotency where id = 'locked' for update`.execute(trx)
      const began = performance.now()
      // The first goes alone; the others wait for it, and are then one group.
      const claims = [claim('alone', 'o'), claim('locked', 'o'), claim('run', 'o'), claim('old', 'o')]
      const twice = [claim('twice', 'one'), claim('twice', 'other', 'other content'), claim('twice', 'one')]
      const many = Array.from({ length: 50 }, (_, i) => claim(`many ${i}`, `o${i}`))
      const bad = assert.rejects(claim('bad', 'o'), { code: '23514' })
      const [alone, locked, run, old] = await Promise.all(claims)
      assert.deepEqual([alone, old], [undefined, undefined])
      assert.deepEqual([locked?.owner, locked?.state], ['first', 'running'])
      assert.deepEqual([run?.owner, run?.state, run?.answer], ['first', 'completed', 'answer'])
      const standing = { owner: 'one', fingerprint: 'f', state: 'running', expiresAt: leaseUntil }
      assert.deepEqual(await Promise.all(twice), [undefined, standing, undefined])
      assert.deepEqual(new Set(await Promise.all(many)), new Set([undefined]))
      await bad
      assert.ok(performance.now() - began < 5000, 'none has waited for the lock')
    })
  })

  it('are waited for by the call that has them already, and at the very end of their time', async (t) => {
    const url = await postgresUrl()
    const operator = await open(t, url)
    const db = await openDatabase(url, { logger: recordingLogger(), poolSize: 2, lockTimeoutMs: 10_000 })
    t.after(() => db.destroy())
    const store = new SqlIdempotencyStore(db)
    const [now, leaseUntil] = [Date.now(), Date.now() + 60_000]
    const claim = (id: string, owner = 'first') =>
      store.claim({ id, owner, fingerprint: 'f', now, leaseUntil })
    for (const id of ['ours', 'run', 'old']) await claim(id)
    assert.equal(await store.complete({ id: 'run', owner: 'first' }, leaseUntil), true)
    await sql`update idempotency set expires_at = ${now} where id = 'old'`.execute(operator)

    const claims = await operator.transaction().execute(async (trx) => {
      await sql`select 1 from idempotency where id <> 'run' for update`.execute(trx)
      // The first goes alone; the others wait for it, and are then one group.
      const [alone, run, ...locked] = [claim('alone'), claim('run'), claim('ours'), claim('old', 'o')]
      assert.deepEqual([await alone, (await run)?.state], [undefined, 'completed'])
      const waiting = sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await untilAsync(async () => (await waiting.execute(operator)).rows.length === 2, 'both wait')
      return locked
    })
    assert.deepEqual(await Promise.all(claims), [undefined, undefined])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { KyselyPlugin } from 'kysely'
import { type Database, SqlIdempotencyStore } from '../../../../lib/stores/sql/index.ts'
import { databaseUrl, open } from '../support/temporary-database.ts'

describe('a claim in SQLite while another process claims its key and gives it up', () => {
  it('is made, whenever the record comes and goes', async (t) => {
    const url = await databaseUrl(t)
    const [own, other] = [await open(t, url), new SqlIdempotencyStore(await open(t, url))]
    const claim = (owner: string) => ({ id: 'key', owner, fingerprint: owner, now: 1000, leaseUntil: 9000 })
    assert.equal(await other.claim(claim('theirs')), undefined)
    const steps = [() => other.release({ id: 'key', owner: 'theirs' })]
    let answers = 0
    const interrupted: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        await steps[answers++]?.()
        return result
      },
    }
    const store = new SqlIdempotencyStore(own.withPlugin(interrupted) as Database)
    assert.equal(await store.claim(claim('ours')), undefined)
    assert.equal(answers, 3, 'it stood, was gone, and is made')
    assert.equal((await other.claim(claim('later')))?.owner, 'ours')
  })
})

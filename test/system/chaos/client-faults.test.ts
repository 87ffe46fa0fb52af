import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { clientLoad } from './client-load.ts'

/** `npm run bench:client` makes 10,000. */
const CALLS = 500
const TIMEOUT_MS = 180_000

for (const { name, url, skip } of BACKENDS) {
  describe(`the client in front of two gateways on ${name}, while upstreams fail, connections break and processes die`, {
    skip,
    timeout: TIMEOUT_MS,
  }, () => {
    it('ends each call in its own answer or a final error, charged at most once', {
      timeout: TIMEOUT_MS,
    }, async (t) => {
      const load = await clientLoad(t, await url(t), CALLS)
      const { ends, charges, undone, violations, retries, kills, seconds } = load
      const counts = Object.groupBy(ends, ({ kind, what }) =>
        kind === 'answered' ? kind : `${kind} ${what}`,
      )
      for (const [end, all = []] of Object.entries(counts)) t.diagnostic(`${end}: ${all.length}`)
      t.diagnostic(`${retries} retries, ${kills} kills, ${seconds.toFixed(1)} s`)

      assert.equal(ends.length, CALLS, 'every call has ended')
      assert.deepEqual(violations, [])
      const twice = [...charges].filter(([, times]) => times > 1)
      assert.deepEqual(twice, [], 'charged more than once')
      for (const { kind, text, what, isReplay } of ends) {
        assert.notEqual(kind, 'foreign', `${text} was answered with ${what}`)
        // Committed unseen, and asked for again at the other process before the void that undoes it was written.
        if (isReplay && undone.has(text)) continue
        if (kind === 'answered') assert.equal(charges.get(text), 1, `${text} was answered, and is charged`)
      }
      const replays = ends.filter(({ kind, isReplay }) => kind === 'answered' && isReplay)
      assert.ok(replays.length > 0, `${replays.length} lost answers came from the call log`)
      assert.ok(retries > 100 && kills > 0, 'there were faults')
      const answered = ends.filter(({ kind }) => kind === 'answered').length
      assert.ok(answered > CALLS / 2, `${answered} answered`)
    })
  })
}

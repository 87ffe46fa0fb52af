import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { type CallLogEntry, newRequestId } from '../../../../lib/core/call/index.ts'
import { NOT_KNOWN } from '../../../../lib/core/usage/index.ts'
import { accountWallet, type Settlement, type SettlementResult } from '../../../../lib/ledger/index.ts'
import {
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
  SqlUsageStore,
} from '../../../../lib/stores/sql/index.ts'
import { entryAt } from '../../../contracts/call-store.ts'
import { charge, draw, figures, fresh, leaseOf, prepaid } from '../../../contracts/ledger-money.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const HOUR = 3_600_000
const NOW = Date.now()
const COST = 7n
const DRAWN = 3n

/** The settlements of one call, all at the same time, and the state of its Idempotency-Key. */
const call = fc.record({
  kinds: fc.array(fc.constantFrom<Settlement['kind'][]>('charge', 'charge', 'revoked', 'void'), {
    minLength: 2,
    maxLength: 5,
  }),
  key: fc.constantFrom('none', 'none', 'own', 'lost'),
})
type Asked = typeof call extends fc.Arbitrary<infer T> ? T : never

/** Two processes on a database, and what they keep there. */
async function processes(t: TestContext, url: string) {
  const handles = [await open(t, url), await open(t, url)] as const
  const [db] = handles
  const [one, other] = handles.map((handle) => new SqlLedger(handle)) as [SqlLedger, SqlLedger]
  const [claims, calls, usage] = [new SqlIdempotencyStore(db), new SqlCallStore(db), new SqlUsageStore(db)]
  const claim = (id: string, owner: string, now: number, leaseUntil: number) =>
    claims.claim({ id, owner, fingerprint: 'f', now, leaseUntil })
  const isStored = async (requestId: string) =>
    (await db.selectFrom('charges').select('at').where('request_id', '=', requestId).execute()).length > 0
  const usageOf = async (account: string) => {
    const span = { from: NOW - 2 * HOUR, to: NOW + 2 * HOUR }
    const [row] = await usage.read({ account, ...span, groupBy: ['account'], limit: 10 })
    return [row?.sums.charged ?? 0n, row?.sums.requests ?? 0, row?.sums.failed ?? 0]
  }
  return { one, other, calls, claim, isStored, usageOf }
}

function settlementsOf({ kinds, key }: Asked, requestId: string, account: string, lease: string) {
  const record = key === 'none' ? null : fresh('record')
  const once = charge(account, COST, {
    ...{ requestId, at: NOW },
    usage: { ...NOT_KNOWN, model: 'm', line: 'l', requests: 1 },
    draws: [draw(lease, accountWallet(account), DRAWN)],
    claim: record === null ? null : { id: record, owner: requestId, keepUntil: NOW + HOUR },
  })
  const billing = { reserved: '1', charged: '1' } as CallLogEntry['billing']
  const ended = { id: requestId, account }
  const entries = {
    charge: entryAt(NOW, { ...ended, status: 200, billing }),
    undone: entryAt(NOW, { ...ended, status: 503, outcome: 'failed' }),
  }
  const settlements = kinds.map((kind): Settlement => {
    const entry = kind === 'charge' ? entries.charge : entries.undone
    return { ...once, kind, entry, ...(kind === 'void' && { draws: [] }) }
  })
  return { record, settlements }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`a charge that is handed over again while ${name} still works on it`, { skip }, () => {
    it('stands, or is undone with all that belongs to it, in whatever order the operations end', async (t) => {
      const { one, other, calls, claim, isStored, usageOf } = await processes(t, await url(t))
      const runs = fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (made) => {
        const account = await prepaid(one, 1000n)
        const lease = await leaseOf(one, accountWallet(account), 100n)
        const asked = made.map((each) => {
          const requestId = newRequestId(NOW)
          return { ...each, requestId, ...settlementsOf(each, requestId, account, lease) }
        })
        for (const { record, key, requestId } of asked) {
          if (record === null) continue
          await claim(record, requestId, NOW, NOW + HOUR)
          if (key === 'lost') await claim(record, 'later', NOW + HOUR, NOW + 3 * HOUR)
        }
        const settling = asked.map(({ settlements }, n) =>
          settlements.map((each, i): Promise<readonly SettlementResult[]> => {
            return ((n + i) % 2 ? one : other).settle([each])
          }),
        )
        const results = await Promise.all(settling.map((each) => Promise.all(each)))

        let [spent, drawn, charged, failed] = [0n, 0n, 0, 0]
        for (const [n, { kinds, key, record, requestId }] of asked.entries()) {
          const what = `${kinds} ${key}`
          const stored = await isStored(requestId)
          const undone = kinds.some((kind) => kind !== 'charge')
          const written = results[n]?.filter(([result], i) => kinds[i] !== 'void' && result === 'written')
          assert.equal(written?.length, stored ? 1 : 0, what)
          const entry = await calls.find(requestId)
          assert.equal(entry?.status, undone ? 503 : stored ? 200 : undefined, what)
          if (stored) drawn += DRAWN
          if (undone) failed++
          else if (stored) [spent, charged] = [spent + COST, charged + 1]
          if (record === null) continue
          const standing = await claim(record, 'asks', NOW + 1, NOW + HOUR)
          const expected = key === 'lost' ? 'later' : undone ? undefined : requestId
          assert.equal(standing?.owner, expected, what)
        }
        assert.deepEqual(await figures(one, account), [1000n, spent, 100n - drawn, 0n])
        assert.deepEqual(await usageOf(account), [spent, charged + failed, failed])
      })
      await fc.assert(runs, { numRuns: 8, endOnFailure: true })
      assert.deepEqual((await one.check()).violations, [])
    })
  })
}

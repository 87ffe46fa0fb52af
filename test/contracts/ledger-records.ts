import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRequestId } from '../../lib/core/call/index.ts'
import { accountWallet, type Settlement } from '../../lib/ledger/index.ts'
import { entryAt } from './call-store.ts'
import {
  assertSound,
  charge,
  draw,
  figures,
  fresh,
  type LedgerUnderTest,
  leaseOf,
  prepaid,
  voidOf,
} from './ledger-money.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')
const LEASE = 60_000
const KEEP = NOW + 86_400_000

/** The contract of a ledger for the Idempotency-Keys and the log entries of what it settles. */
export function recordsContract(tested: () => LedgerUnderTest): void {
  const first = () => tested().ledgers[0]
  const settle = async (...settlements: Settlement[]) => [...(await first().settle(settlements))]
  const members = (requestId: string, id: string, status = 200): Partial<Settlement> => ({
    requestId,
    claim: { id, owner: requestId, keepUntil: KEEP },
    entry: entryAt(NOW, { id: requestId, status }),
  })

  describe('records of settled calls', () => {
    it('are written if the ledger declares that, and not otherwise', async () => {
      assert.equal(first().settlesRecords, tested().records !== undefined)
      if (tested().records) return
      const account = await prepaid(first(), 100n)
      const requestId = newRequestId(NOW)
      const once = charge(account, 10n, members(requestId, fresh('record')))
      assert.deepEqual(await settle(once, voidOf(once)), ['written', 'written'])
    })

    it('a charge completes its claim and writes its entry', async () => {
      const { records } = tested()
      if (!records) return
      const account = await prepaid(first(), 100n)
      const { claims, calls } = records
      const settled = await Promise.all(
        Array.from({ length: 3 }, async () => {
          const [requestId, id] = [newRequestId(NOW), fresh('record')]
          const claim = { id, owner: requestId, fingerprint: 'f', now: NOW, leaseUntil: NOW + LEASE }
          await claims.claim(claim)
          return charge(account, 10n, members(requestId, id))
        }),
      )
      const plain = charge(account, 1n)
      assert.deepEqual(await settle(...settled, plain), ['written', 'written', 'written', 'written'])
      for (const { requestId, claim, entry } of settled) {
        assert.ok(claim)
        const other = { owner: 'x', fingerprint: 'f', now: KEEP - 1, leaseUntil: KEEP }
        const completed = { owner: requestId, fingerprint: 'f', state: 'completed', expiresAt: KEEP }
        assert.deepEqual(await claims.claim({ id: claim.id, ...other }), completed)
        assert.deepEqual(await calls.find(requestId), entry)
      }
      assert.equal(await calls.find(plain.requestId), undefined)
      assert.deepEqual(await settle(...settled), ['known', 'known', 'known'])
    })

    it('nothing is charged, drawn or logged if the claim was lost', async () => {
      const { records } = tested()
      if (!records) return
      const { claims, calls } = records
      const account = await prepaid(first(), 100n)
      const [paused, later, id] = [newRequestId(NOW), newRequestId(NOW), fresh('record')]
      const claim = { id, fingerprint: 'f', leaseUntil: NOW + 2 * LEASE }
      await claims.claim({ ...claim, owner: paused, now: NOW, leaseUntil: NOW + LEASE })
      await claims.claim({ ...claim, owner: later, now: NOW + LEASE })
      const fenced = charge(account, 10n, members(paused, id))
      const never = charge(account, 10n, members(newRequestId(NOW), fresh('record')))
      const fine = charge(account, 5n)
      assert.deepEqual(await settle(fenced, fine, never), ['fenced', 'written', 'fenced'])
      assert.deepEqual(await settle(fenced, fenced), ['fenced', 'fenced'])
      assert.deepEqual(await figures(first(), account), [100n, 5n, 0n, 0n])
      assert.equal(await calls.find(paused), undefined)
      const standing = await claims.claim({ ...claim, owner: 'x', now: NOW + LEASE + 1 })
      assert.deepEqual([standing?.owner, standing?.state], [later, 'running'])
    })

    it('a written charge is known, even if its claim was lost since', async () => {
      const { records } = tested()
      if (!records) return
      const account = await prepaid(first(), 100n)
      const [requestId, id] = [newRequestId(NOW), fresh('record')]
      const claim = { id, owner: requestId, fingerprint: 'f', now: NOW, leaseUntil: NOW + LEASE }
      await records.claims.claim(claim)
      const once = charge(account, 10n, members(requestId, id))
      await settle(once)
      await records.claims.claim({ ...claim, owner: 'later', now: KEEP, leaseUntil: KEEP + LEASE })
      assert.deepEqual(await settle(once), ['known'])
      assert.deepEqual(await figures(first(), account), [100n, 10n, 0n, 0n])
    })

    it('a void frees the claim, running or completed, and its entry replaces that of the charge', async () => {
      const { records } = tested()
      if (!records) return
      const { claims, calls } = records
      const account = await prepaid(first(), 100n)
      for (const charged of [true, false]) {
        const [requestId, id] = [newRequestId(NOW), fresh('record')]
        const claim = { id, owner: requestId, fingerprint: 'f', now: NOW, leaseUntil: NOW + LEASE }
        await claims.claim(claim)
        const once = charge(account, 10n, members(requestId, id))
        const undone = voidOf(once, members(requestId, id, 503))
        if (charged) await settle(once)
        assert.deepEqual(await settle(undone), ['written'])
        assert.equal((await calls.find(requestId))?.status, 503)
        assert.deepEqual(await settle(once), [charged ? 'known' : 'fenced'])
        assert.equal((await calls.find(requestId))?.status, 503)
        assert.equal(await claims.claim({ ...claim, owner: 'later' }), undefined, 'the key is free')
        assert.deepEqual(await settle(undone), ['known'])
        assert.equal((await claims.claim({ ...claim, owner: 'x' }))?.owner, 'later')
      }
      assert.deepEqual(await figures(first(), account), [100n, 0n, 0n, 0n])
    })

    it('a charge that is revoked in one step frees its claim, whether it was stored before or not, and is not in effect', async () => {
      const { records } = tested()
      if (!records) return
      const { claims, calls } = records
      const account = await prepaid(first(), 100n)
      for (const stored of [true, false]) {
        const [requestId, id] = [newRequestId(NOW), fresh('record')]
        const claim = { id, owner: requestId, fingerprint: 'f', now: NOW, leaseUntil: NOW + LEASE }
        await claims.claim(claim)
        const once = charge(account, 10n, members(requestId, id))
        if (stored) await settle(once)
        const revoked = { ...charge(account, 10n, members(requestId, id, 503)), kind: 'revoked' as const }
        // Another charge of the same transaction stands.
        assert.deepEqual(await settle(revoked, charge(account, 1n)), [
          stored ? 'known' : 'written',
          'written',
        ])
        assert.equal((await calls.find(requestId))?.status, 503)
        assert.equal(await claims.claim({ ...claim, owner: 'later' }), undefined, 'the key is free')
        assert.deepEqual(await settle(once), ['known'])
      }
      assert.deepEqual(await figures(first(), account), [100n, 2n, 0n, 0n])
    })

    it('a charge that is revoked in one step after its claim was lost is not charged or drawn, and is logged once', async () => {
      const { records } = tested()
      if (!records) return
      const { claims, calls } = records
      const account = await prepaid(first(), 100n)
      const lease = await leaseOf(first(), accountWallet(account), 50n)
      for (const stored of [true, false]) {
        const [requestId, later, id] = [newRequestId(NOW), newRequestId(NOW), fresh('record')]
        const claim = { id, fingerprint: 'f', leaseUntil: KEEP + LEASE }
        await claims.claim({ ...claim, owner: requestId, now: NOW, leaseUntil: NOW + LEASE })
        const draws = [draw(lease, accountWallet(account), 10n)]
        const once = charge(account, 10n, { ...members(requestId, id), draws })
        if (stored) await settle(once)
        await claims.claim({ ...claim, owner: later, now: KEEP })
        const revoked = { ...once, ...members(requestId, id, 503), kind: 'revoked' as const }
        for (const _times of [1, 2]) assert.deepEqual(await settle(revoked), [stored ? 'known' : 'fenced'])
        assert.deepEqual(await settle(once), [stored ? 'known' : 'fenced'])
        assert.equal((await calls.find(requestId))?.status, 503)
        const standing = await claims.claim({ ...claim, owner: 'x', now: KEEP + 1 })
        assert.deepEqual([standing?.owner, standing?.state], [later, 'running'])
      }
      assert.deepEqual(await figures(first(), account), [100n, 0n, 40n, 0n])
      await assertSound(first())
    })

    it('a charge of a voided call that still has its claim frees the key', async () => {
      const { records } = tested()
      if (!records) return
      const account = await prepaid(first(), 100n)
      const [requestId, id] = [newRequestId(NOW), fresh('record')]
      const claim = { id, owner: requestId, fingerprint: 'f', now: NOW, leaseUntil: NOW + LEASE }
      await records.claims.claim(claim)
      const once = charge(account, 10n, members(requestId, id))
      assert.deepEqual(await settle(voidOf(once, { claim: null, entry: null }), once), ['written', 'known'])
      assert.equal(await records.calls.find(requestId), undefined)
      assert.equal(await records.claims.claim({ ...claim, owner: 'later' }), undefined)
    })

    it('an entry replaces an earlier one of the log', async () => {
      const { records } = tested()
      if (!records) return
      const account = await prepaid(first(), 100n)
      const entries = Array.from({ length: 300 }, () => entryAt(NOW, { status: 500 }))
      await records.calls.append(entries)
      const batch = entries.map((entry) =>
        charge(account, 0n, { requestId: entry.id, entry: { ...entry, status: 200, response_body: 'body' } }),
      )
      await settle(...batch, ...batch)
      for (const { id } of entries) {
        const found = await records.calls.find(id)
        assert.deepEqual([found?.status, found?.response_body], [200, 'body'])
      }
    })
  })
}

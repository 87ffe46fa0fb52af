import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { KeySettings, KeyStore } from '../../lib/management/index.ts'
import { hashSecret } from '../../lib/middleware/authenticate/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf, PREPAID } from './account-money.ts'
import { FULL_KEY, type KeyStoreUnderTest, newKey, OPEN_KEY } from './key-samples.ts'
import { keySecretContract } from './key-secrets.ts'

export type { KeyStoreUnderTest }

/** The contract of every store of keys. */
export function keyStoreContract(
  name: string,
  open: () => Promise<KeyStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`key store: ${name}`, { skip }, () => {
    let opened: KeyStoreUnderTest
    let keys: KeyStore
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      keys = opened.keys
      await opened.accounts.create('acme', { ...PREPAID, regions: ['local'] }, originOf())
      await opened.accounts.create('globex', PREPAID, originOf())
    })

    const recordOf = async (secret: string) => opened.directory.find(hashSecret(secret))
    const recorded = async (subject: string) => {
      const changes = await opened.changes.list({ subject, limit: 100 })
      return changes.toReversed()
    }

    it('finds a key as it was created, also for authentication', async () => {
      const origin = originOf()
      const creation = await keys.create(newKey('full', FULL_KEY), origin)
      const key = {
        ...FULL_KEY,
        id: 'full',
        account: 'acme',
        createdAt: origin.at,
        lastUsedAt: null,
        previousUntil: null,
      }
      assert.deepEqual(creation, { kind: 'created', key })
      assert.deepEqual(await keys.find('full'), key)
      const { quota: _, name: _name, note: _note, ...known } = FULL_KEY
      const { limits } = PREPAID
      const account = { id: 'acme', limits, regions: ['local'], lineRegions: null, suspended: false }
      assert.deepEqual(await recordOf('sk-full'), { ...known, id: 'full', account })
      assert.equal(await keys.find('nobody'), undefined)
    })

    it('opens a wallet for the quota', async () => {
      await keys.create(newKey('k', FULL_KEY), originOf())
      const [wallet] = await opened.ledger.wallets(['key:k'])
      assert.deepEqual([wallet?.funds, wallet?.spent, wallet?.leased], [FULL_KEY.quota, 0n, 0n])
    })

    it('creates a key once, and none for an unknown account', async () => {
      const asked = Array.from({ length: 10 }, () => keys.create(newKey('one'), originOf()))
      const kinds = (await Promise.all(asked)).map(({ kind }) => kind)
      assert.deepEqual(kinds.sort(), ['created', ...Array(9).fill('taken')])
      assert.equal((await recorded('one')).length, 1)
      assert.deepEqual(await keys.create(newKey('two', OPEN_KEY, 'nobody'), originOf()), {
        kind: 'no_account',
      })
      assert.equal(await keys.find('two'), undefined)
      assert.deepEqual(await recorded('two'), [])
      assert.deepEqual(await opened.ledger.wallets(['key:two']), [])
    })

    it('lists keys by the bytes of their ids, of one account or of all', async () => {
      for (const id of ['b', 'A', 'a', 'B']) await keys.create(newKey(id), originOf())
      await keys.create(newKey('aa', OPEN_KEY, 'globex'), originOf())
      const idsOf = async (query: object) => (await keys.list({ limit: 10, ...query })).map(({ id }) => id)
      assert.deepEqual(await idsOf({}), ['A', 'B', 'a', 'aa', 'b'])
      assert.deepEqual(await idsOf({ account: 'acme' }), ['A', 'B', 'a', 'b'])
      assert.deepEqual(await idsOf({ after: 'B', limit: 2 }), ['a', 'aa'])
      assert.deepEqual(await idsOf({ account: 'nobody' }), [])
    })

    it('changes a key, also for authentication and the ledger, and records its state before and after', async () => {
      await keys.create(newKey('k'), originOf())
      const origin = originOf('ada')
      const changed = await keys.change('k', () => FULL_KEY, origin)
      assert.deepEqual(changed, await keys.find('k'))
      assert.equal((await recordOf('sk-k'))?.enabled, false)
      assert.equal((await opened.ledger.wallets(['key:k']))[0]?.funds, FULL_KEY.quota)
      const noted = { name: null, note: null, tags: {} }
      const none = { account: 'acme', ...noted, enabled: true, expires_at: null, quota: null }
      assert.deepEqual((await recorded('k')).at(-1), {
        ...origin,
        action: 'key.changed',
        subject: 'k',
        before: { ...none, allow_ips: null, allow_models: null, limits: OPEN_KEY.limits },
        after: {
          account: 'acme',
          name: FULL_KEY.name,
          note: FULL_KEY.note,
          tags: FULL_KEY.tags,
          enabled: false,
          expires_at: '2030-01-01T00:00:00.000Z',
          quota: '5',
          allow_ips: FULL_KEY.allowIps,
          allow_models: FULL_KEY.allowModels,
          limits: FULL_KEY.limits,
        },
      })
      await keys.change('k', () => OPEN_KEY, originOf())
      assert.deepEqual((await keys.find('k'))?.quota, null)
    })

    it('records nothing if nothing is changed, or the key is unknown', async () => {
      await keys.create(newKey('k', FULL_KEY), originOf())
      await keys.change('k', (settings) => ({ ...settings }), originOf())
      assert.equal((await recorded('k')).length, 1)
      assert.equal(await keys.change('nobody', () => OPEN_KEY, originOf()), undefined)
      assert.equal(await keys.rotate('nobody', hashSecret('x'), originOf()), undefined)
      assert.equal(await keys.delete('nobody', originOf()), false)
      assert.deepEqual(await recorded('nobody'), [])
    })

    it('loses no concurrent change', async () => {
      await keys.create(newKey('k', { ...OPEN_KEY, quota: 0n }), originOf())
      const addOne = (settings: KeySettings): KeySettings => ({
        ...settings,
        quota: (settings.quota ?? 0n) + 1n,
      })
      await Promise.all(Array.from({ length: 10 }, () => keys.change('k', addOne, originOf())))
      assert.equal((await keys.find('k'))?.quota, 10n)
    })

    keySecretContract(() => opened)

    it('deletes a key permanently: its id cannot be used again, and its charges remain', async () => {
      await keys.create(newKey('k', FULL_KEY), originOf())
      assert.equal(await keys.delete('k', originOf('ada')), true)
      assert.equal(await keys.find('k'), undefined)
      assert.equal(await recordOf('sk-k'), undefined)
      assert.equal(await keys.delete('k', originOf()), false)
      assert.deepEqual(await keys.create(newKey('k'), originOf()), { kind: 'taken' })
      assert.equal((await opened.ledger.wallets(['key:k'])).length, 1)
      const last = (await recorded('k')).at(-1)
      assert.deepEqual([last?.action, last?.actor, last?.after], ['key.deleted', 'ada', null])
      assert.ok(last?.before)
    })

    it('lists changes newest first, page by page', async () => {
      for (const id of ['x', 'y', 'z']) await keys.create(newKey(id), originOf())
      const first = await opened.changes.list({ limit: 2 })
      assert.deepEqual(
        first.map(({ subject }) => subject),
        ['z', 'y'],
      )
      const rest = await opened.changes.list({ limit: 9, before: first[1]?.requestId })
      assert.deepEqual(
        rest.map(({ subject }) => subject),
        ['x', 'globex', 'acme'],
      )
    })
  })
}

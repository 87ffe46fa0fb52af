import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import type {
  AccountStore,
  KeySettings,
  KeyStore,
  LedgerView,
  NewKey,
} from '../../lib/endpoints/admin/index.ts'
import { hashSecret, type KeyDirectory } from '../../lib/middleware/authenticate/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf, PREPAID } from './account-store.ts'

/** A store to try, with nothing in it, and what stands behind it. */
export interface KeyStoreUnderTest {
  keys: KeyStore
  accounts: AccountStore
  directory: KeyDirectory
  ledger: LedgerView
  changes: ChangeLog
  close(): Promise<void>
}

const OPEN: KeySettings = {
  enabled: true,
  expiresAt: null,
  quota: null,
  allowIps: null,
  allowModels: null,
  limits: { rpm: null, tpm: null },
}

const FULL: KeySettings = {
  enabled: false,
  expiresAt: Date.UTC(2030, 0, 1),
  quota: 5_000_000_000n,
  allowIps: ['10.0.0.0/8', '::1'],
  allowModels: ['chat-*', 'Åcme "model"'],
  limits: { rpm: 60, tpm: 5_000_000_000 },
}

const newKey = (id: string, settings: KeySettings = OPEN, account = 'acme'): NewKey => ({
  ...settings,
  id,
  account,
  secretHash: hashSecret(`sk-${id}`),
})

/** What every store of keys must do. */
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

    it('finds a key as it was made, and so does authentication', async () => {
      const origin = originOf()
      const creation = await keys.create(newKey('full', FULL), origin)
      const key = { ...FULL, id: 'full', account: 'acme', createdAt: origin.at }
      assert.deepEqual(creation, { kind: 'created', key })
      assert.deepEqual(await keys.find('full'), key)
      const { quota: _, ...known } = FULL
      const { limits } = PREPAID
      const account = { id: 'acme', limits, regions: ['local'], lineRegions: null }
      assert.deepEqual(await recordOf('sk-full'), { ...known, id: 'full', account })
      assert.equal(await keys.find('nobody'), undefined)
    })

    it('opens the wallet of the quota', async () => {
      await keys.create(newKey('k', FULL), originOf())
      const [wallet] = await opened.ledger.wallets(['key:k'])
      assert.deepEqual([wallet?.funds, wallet?.spent, wallet?.leased], [FULL.quota, 0n, 0n])
    })

    it('makes a key once, and none of an account that is not there', async () => {
      const asked = Array.from({ length: 10 }, () => keys.create(newKey('one'), originOf()))
      const kinds = (await Promise.all(asked)).map(({ kind }) => kind)
      assert.deepEqual(kinds.sort(), ['created', ...Array(9).fill('taken')])
      assert.equal((await recorded('one')).length, 1)
      assert.deepEqual(await keys.create(newKey('two', OPEN, 'nobody'), originOf()), { kind: 'no_account' })
      assert.equal(await keys.find('two'), undefined)
      assert.deepEqual(await recorded('two'), [])
      assert.deepEqual(await opened.ledger.wallets(['key:two']), [])
    })

    it('lists by the bytes of the ids, of one account or of all', async () => {
      for (const id of ['b', 'A', 'a', 'B']) await keys.create(newKey(id), originOf())
      await keys.create(newKey('aa', OPEN, 'globex'), originOf())
      const idsOf = async (query: object) => (await keys.list({ limit: 10, ...query })).map(({ id }) => id)
      assert.deepEqual(await idsOf({}), ['A', 'B', 'a', 'aa', 'b'])
      assert.deepEqual(await idsOf({ account: 'acme' }), ['A', 'B', 'a', 'b'])
      assert.deepEqual(await idsOf({ after: 'B', limit: 2 }), ['a', 'aa'])
      assert.deepEqual(await idsOf({ account: 'nobody' }), [])
    })

    it('changes a key, for authentication and the ledger too, and records what was and what is', async () => {
      await keys.create(newKey('k'), originOf())
      const origin = originOf('ada')
      const changed = await keys.change('k', () => FULL, origin)
      assert.deepEqual(changed, await keys.find('k'))
      assert.equal((await recordOf('sk-k'))?.enabled, false)
      assert.equal((await opened.ledger.wallets(['key:k']))[0]?.funds, FULL.quota)
      const none = { account: 'acme', enabled: true, expires_at: null, quota: null }
      assert.deepEqual((await recorded('k')).at(-1), {
        ...origin,
        action: 'key.changed',
        subject: 'k',
        before: { ...none, allow_ips: null, allow_models: null, limits: OPEN.limits },
        after: {
          account: 'acme',
          enabled: false,
          expires_at: '2030-01-01T00:00:00.000Z',
          quota: '5',
          allow_ips: FULL.allowIps,
          allow_models: FULL.allowModels,
          limits: FULL.limits,
        },
      })
      await keys.change('k', () => OPEN, originOf())
      assert.deepEqual((await keys.find('k'))?.quota, null)
    })

    it('records nothing where nothing is changed, or nothing is there', async () => {
      await keys.create(newKey('k', FULL), originOf())
      await keys.change('k', (settings) => ({ ...settings }), originOf())
      assert.equal((await recorded('k')).length, 1)
      assert.equal(await keys.change('nobody', () => OPEN, originOf()), undefined)
      assert.equal(await keys.rotate('nobody', hashSecret('x'), originOf()), undefined)
      assert.equal(await keys.delete('nobody', originOf()), false)
      assert.deepEqual(await recorded('nobody'), [])
    })

    it('loses none of the changes that are made at once', async () => {
      await keys.create(newKey('k', { ...OPEN, quota: 0n }), originOf())
      const addOne = (settings: KeySettings): KeySettings => ({
        ...settings,
        quota: (settings.quota ?? 0n) + 1n,
      })
      await Promise.all(Array.from({ length: 10 }, () => keys.change('k', addOne, originOf())))
      assert.equal((await keys.find('k'))?.quota, 10n)
    })

    it('gives a key another secret; the one before is good for nothing', async () => {
      await keys.create(newKey('k', FULL), originOf())
      const before = await keys.find('k')
      assert.deepEqual(await keys.rotate('k', hashSecret('sk-new'), originOf()), before)
      assert.equal(await recordOf('sk-k'), undefined)
      assert.equal((await recordOf('sk-new'))?.id, 'k')
      const actions = (await recorded('k')).map(({ action }) => action)
      assert.deepEqual(actions, ['key.created', 'key.rotated'])
      assert.ok(!JSON.stringify(await recorded('k')).includes(hashSecret('sk-new')), 'nothing of the secret')
    })

    it('deletes a key for good: its id is not given again, and its charges stay', async () => {
      await keys.create(newKey('k', FULL), originOf())
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

    it('changes are listed newest first, page by page', async () => {
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

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { NANOS_PER_UNIT } from '../../lib/core/catalog/index.ts'
import type {
  AccountSettings,
  AccountStore,
  ChangeOrigin,
  LedgerView,
  RecordedChange,
} from '../../lib/endpoints/admin/index.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** A store to try, with nothing in it, and the ledger behind it. */
export interface AccountStoreUnderTest {
  accounts: AccountStore
  ledger: LedgerView
  /** Everything that was recorded, in its order. */
  changes(): Promise<readonly RecordedChange[]>
  close(): Promise<void>
}

export const PREPAID: AccountSettings = {
  name: null,
  prepaid: true,
  limits: { rpm: null, tpm: null, concurrency: null },
  regions: null,
  lineRegions: null,
}

let made = 0

/** As of an admin request of its own. */
export function originOf(actor = 'admin'): ChangeOrigin {
  made++
  return { requestId: `req_${String(made).padStart(6, '0')}`, actor, at: Date.UTC(2026, 0, 1) + made }
}

/** What every store of accounts must do. */
export function accountStoreContract(
  name: string,
  open: () => Promise<AccountStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`account store: ${name}`, { skip }, () => {
    let opened: AccountStoreUnderTest
    let accounts: AccountStore
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
      accounts = opened.accounts
    })

    const figuresOf = async (id: string) => {
      const [wallet] = await opened.ledger.wallets([`account:${id}`])
      return wallet && { funds: wallet.funds, spent: wallet.spent, leased: wallet.leased }
    }

    it('finds an account as it was made, whatever its texts hold', async () => {
      const settings: AccountSettings = {
        name: 'Åcme \u{1f9ea} "quoted"\u0000\n',
        prepaid: false,
        limits: { rpm: 600, tpm: 5_000_000_000, concurrency: 1 },
        regions: [],
        lineRegions: ['us', 'eu'],
      }
      const origin = originOf()
      const account = { ...settings, id: "a/b'c", createdAt: origin.at }
      assert.deepEqual(await accounts.create("a/b'c", settings, origin), account)
      assert.deepEqual(await accounts.find("a/b'c"), account)
      assert.equal(await accounts.find('a'), undefined)
      assert.equal(await accounts.find(''), undefined)
    })

    it('opens the wallet of a new account', async () => {
      assert.equal(await figuresOf('new'), undefined)
      await accounts.create('new', PREPAID, originOf())
      assert.deepEqual(await figuresOf('new'), { funds: 0n, spent: 0n, leased: 0n })
    })

    it('makes an account once, of however many who ask', async () => {
      const asked = Array.from({ length: 20 }, (_, i) =>
        accounts.create('one', { ...PREPAID, name: `asker ${i}` }, originOf(`asker ${i}`)),
      )
      const made = (await Promise.all(asked)).filter((account) => account !== undefined)
      assert.equal(made.length, 1)
      assert.deepEqual(await accounts.find('one'), made[0])
      assert.deepEqual(
        (await opened.changes()).map(({ action, subject, actor }) => [action, subject, actor]),
        [['account.created', 'one', made[0]?.name]],
      )
    })

    it('lists by the bytes of the ids, page by page', async () => {
      const ids = ['b', 'B', 'a-1', 'a1', 'A', 'a', 'Z~', '~']
      for (const id of ids) await accounts.create(id, PREPAID, originOf())
      const listed: string[] = []
      for (let after: string | undefined; ; after = listed.at(-1)) {
        const page = await accounts.list(3, after)
        listed.push(...page.map(({ id }) => id))
        if (page.length < 3) break
      }
      assert.deepEqual(listed, ids.toSorted())
      assert.deepEqual(
        (await accounts.list(100, 'a')).map(({ id }) => id),
        ['a-1', 'a1', 'b', '~'],
      )
    })

    it('changes an account, and records what was and what is', async () => {
      await accounts.create('acme', PREPAID, originOf())
      const origin = originOf('ada')
      const limits = { rpm: 5, tpm: null, concurrency: null }
      const changed = await accounts.change(
        'acme',
        (settings) => ({ ...settings, name: 'Acme', prepaid: false, limits, regions: ['local'] }),
        origin,
      )
      assert.deepEqual(changed, await accounts.find('acme'))
      assert.deepEqual(
        [changed?.name, changed?.prepaid, changed?.limits, changed?.regions, changed?.lineRegions],
        ['Acme', false, limits, ['local'], null],
      )
      const none = { rpm: null, tpm: null, concurrency: null }
      assert.deepEqual((await opened.changes()).at(-1), {
        ...origin,
        action: 'account.changed',
        subject: 'acme',
        before: { name: null, prepaid: true, limits: none, regions: null, line_regions: null },
        after: { name: 'Acme', prepaid: false, limits, regions: ['local'], line_regions: null },
      })
    })

    it('records nothing where nothing is changed', async () => {
      const account = await accounts.create('acme', { ...PREPAID, regions: ['local'] }, originOf())
      const revise = (settings: AccountSettings) => ({ ...settings, regions: ['local'] })
      assert.deepEqual(await accounts.change('acme', revise, originOf()), account)
      assert.equal((await opened.changes()).length, 1)
    })

    it('changes no account that is not there', async (t) => {
      const revise = t.mock.fn((settings: AccountSettings) => settings)
      assert.equal(await accounts.change('nobody', revise, originOf()), undefined)
      assert.equal(revise.mock.callCount(), 0)
      assert.deepEqual(await opened.changes(), [])
    })

    it('loses none of the changes that are made at once', async () => {
      await accounts.create('acme', { ...PREPAID, limits: { ...PREPAID.limits, rpm: 1 } }, originOf())
      const addOne = (settings: AccountSettings): AccountSettings => ({
        ...settings,
        limits: { ...settings.limits, rpm: (settings.limits.rpm ?? 0) + 1 },
      })
      await Promise.all(Array.from({ length: 20 }, () => accounts.change('acme', addOne, originOf())))
      assert.equal((await accounts.find('acme'))?.limits.rpm, 21)
      const recorded = (await opened.changes()).filter(({ action }) => action === 'account.changed')
      const rpmOf = (side: object | null) => (side as AccountSettings | null)?.limits.rpm
      assert.deepEqual(
        recorded.map(({ before, after }) => [rpmOf(before), rpmOf(after)]).sort(byFirst),
        Array.from({ length: 20 }, (_, i) => [i + 1, i + 2]),
      )
    })

    it('takes a deposit once per reference, and says when the money came', async () => {
      await accounts.create('acme', PREPAID, originOf())
      await accounts.create('globex', PREPAID, originOf())
      const origin = originOf('ada')
      const reference = 'invoice 7 \u{1f9fe}'
      assert.deepEqual(await accounts.deposit('acme', 5n, reference, origin), {
        kind: 'deposited',
        at: origin.at,
      })
      assert.deepEqual(await accounts.deposit('acme', 5n, reference, originOf()), {
        kind: 'known',
        at: origin.at,
      })
      assert.deepEqual(await accounts.deposit('acme', 6n, reference, originOf()), { kind: 'conflict' })
      assert.equal((await figuresOf('acme'))?.funds, 5n)
      const other = await accounts.deposit('globex', 6n, reference, originOf())
      assert.equal(other.kind, 'deposited', 'the references of one account are not those of another')
      const recorded = (await opened.changes()).filter(({ action }) => action === 'account.deposited')
      assert.equal(recorded.length, 2)
      assert.deepEqual(recorded[0], {
        ...origin,
        action: 'account.deposited',
        subject: 'acme',
        before: { deposited: '0' },
        after: { deposited: '0.000000005', amount: '0.000000005', reference },
      })
    })

    it('takes no deposit for an account that is not there', async () => {
      assert.deepEqual(await accounts.deposit('nobody', 5n, 'r', originOf()), { kind: 'no_account' })
      assert.equal(await figuresOf('nobody'), undefined)
      assert.deepEqual(await opened.changes(), [])
    })

    it('takes no more than 64 bits of nano-units', async () => {
      const most = 2n ** 63n - 1n
      await accounts.create('acme', PREPAID, originOf())
      assert.equal((await accounts.deposit('acme', most - 1n, 'first', originOf())).kind, 'deposited')
      assert.deepEqual(await accounts.deposit('acme', 2n, 'second', originOf()), { kind: 'too_much' })
      assert.equal((await figuresOf('acme'))?.funds, most - 1n)
      assert.equal((await accounts.deposit('acme', most - 1n, 'first', originOf())).kind, 'known')
      assert.equal((await accounts.deposit('acme', 1n, 'second', originOf())).kind, 'deposited')
      assert.equal((await figuresOf('acme'))?.funds, most)
    })

    it('of deposits made at once each reference counts once', async () => {
      await accounts.create('acme', PREPAID, originOf())
      const asked = Array.from({ length: 40 }, (_, i) =>
        accounts.deposit('acme', NANOS_PER_UNIT, `reference ${i % 10}`, originOf()),
      )
      const kinds = (await Promise.all(asked)).map(({ kind }) => kind)
      assert.equal(kinds.filter((kind) => kind === 'deposited').length, 10)
      assert.equal(kinds.filter((kind) => kind === 'known').length, 30)
      assert.equal((await figuresOf('acme'))?.funds, 10n * NANOS_PER_UNIT)
      const recorded = (await opened.changes()).filter(({ action }) => action === 'account.deposited')
      assert.deepEqual(
        recorded
          .map(({ before, after }) => [depositedIn(before), depositedIn(after)].map(Number))
          .sort(byFirst),
        Array.from({ length: 10 }, (_, i) => [i, i + 1]),
      )
    })
  })
}

function byFirst([one]: readonly unknown[], [other]: readonly unknown[]): number {
  return Number(one) - Number(other)
}

function depositedIn(side: object | null): string | undefined {
  return (side as { deposited?: string } | null)?.deposited
}

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  type AccountStore,
  ConfigAuthority,
  type Difference,
  type DriftPage,
  type KeyStore,
  type Seeds,
} from '../../../lib/management/index.ts'
import { hashSecret, type KeyDirectory, type KeySeed } from '../../../lib/middleware/authenticate/index.ts'
import {
  type Database,
  SqlAccountStore,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlSeeds,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-money.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'

interface Stores {
  readonly accounts: AccountStore
  readonly keys: KeyStore
  readonly directory: KeyDirectory
  readonly seeds: Seeds
}

type Config = Pick<KeySeed, 'accounts' | 'keys'>

const idsOf = (all: readonly string[], least = 0) => fc.subarray([...all], { minLength: least })
const oneOf = <T>(...values: T[]) => fc.constantFrom(...values)

/** Configs with few ids and secrets, so that they collide. */
const config = fc
  .tuple(
    idsOf(['a', 'b', 'c'], 1),
    idsOf(['k', 'l', 'm', 'n']),
    fc.shuffledSubarray(['1', '2', '3', '4'], { minLength: 4 }),
  )
  .chain(([accountIds, keyIds, secrets]) =>
    fc.record({
      accounts: fc.tuple(
        ...accountIds.map((id) =>
          fc.record({
            id: fc.constant(id),
            name: oneOf(undefined, 'Acme'),
            balance: oneOf(undefined, '25'),
            limits: oneOf(undefined, { rpm: 5, tpm: null, concurrency: null }),
            lineRegions: oneOf(undefined, ['eu']),
          }),
        ),
      ),
      keys: fc.tuple(
        ...keyIds.map((id, i) =>
          fc.record({
            id: fc.constant(id),
            account: oneOf(...accountIds),
            secret: fc.constant(`sk-${secrets[i]}`),
            enabled: fc.boolean(),
            quota: oneOf(undefined, '5'),
            allowModels: oneOf(undefined, [], ['chat-*']),
            expiresAt: oneOf(undefined, '2030-01-01T00:00:00Z'),
            tags: oneOf(undefined, { team: 'a', env: 'b' }),
          }),
        ),
      ),
    }),
  )
  // Without the members that are undefined.
  .map((given) => JSON.parse(JSON.stringify(given)) as Config)

/** The changes that operators make meanwhile. */
const edits = fc.array(
  fc.record({
    id: oneOf('k', 'l', 'm', 'a', 'b'),
    what: oneOf('disable', 'rotate', 'delete', 'suspend', 'note'),
  }),
  { maxLength: 5 },
)

async function edit(
  { accounts, keys }: Stores,
  done: readonly { id: string; what: string }[],
): Promise<void> {
  for (const [i, { id, what }] of done.entries()) {
    if (what === 'disable') await keys.change(id, (key) => ({ ...key, enabled: false }), originOf())
    if (what === 'note') await keys.change(id, (key) => ({ ...key, note: 'by hand' }), originOf())
    if (what === 'rotate') await keys.rotate(id, hashSecret(`other-${id}-${i}`), originOf(), 60_000)
    if (what === 'delete') await keys.delete(id, originOf())
    if (what === 'suspend')
      await accounts.change(id, (account) => ({ ...account, status: 'suspended' }), originOf())
  }
}

/** Says by itself, from what the stores answer, which ids differ. */
async function differing(stores: Stores, first: Config, { accounts, keys }: Config): Promise<string[]> {
  const ids: string[] = []
  for (const id of new Set([...first.accounts, ...accounts].map((account) => account.id))) {
    const wanted = accounts.find((account) => account.id === id)
    const found = await stores.accounts.find(id)
    const same =
      wanted && found
        ? found.status === 'active' &&
          found.name === (wanted.name ?? null) &&
          found.prepaid === (wanted.balance !== undefined) &&
          found.limits.rpm === (wanted.limits?.rpm ?? null) &&
          String(found.lineRegions) === String(wanted.lineRegions ?? null)
        : !wanted && found?.status !== 'active'
    if (!same) ids.push(`account:${id}`)
  }
  for (const id of new Set([...first.keys, ...keys].map((key) => key.id))) {
    const wanted = keys.find((key) => key.id === id)
    const found = await stores.keys.find(id)
    const record = wanted && (await stores.directory.find(hashSecret(wanted.secret)))
    const same =
      wanted && found
        ? record?.id === id &&
          record.secretUntil === undefined &&
          found.account === wanted.account &&
          found.note === null &&
          found.enabled === wanted.enabled &&
          (found.quota === null ? undefined : '5') === wanted.quota &&
          String(found.allowModels?.length) === String(wanted.allowModels?.length) &&
          (found.expiresAt === null) === (wanted.expiresAt === undefined) &&
          found.tags.team === wanted.tags?.team
        : !wanted && !found?.enabled
    if (!same) ids.push(`key:${id}`)
  }
  return ids.sort()
}

/** Returns the differences of all pages. */
async function driftOf(authority: ConfigAuthority, limit = 100): Promise<Difference[]> {
  const all: Difference[] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { differences, reached }: DriftPage = await authority.drift(limit, after)
    all.push(...differences)
    after = reached
  }
  return all
}

async function tried(
  stores: Stores,
  first: Config,
  next: Config,
  done: readonly { id: string; what: string }[],
) {
  // By nobody's config.
  await stores.accounts.create('api', { ...OWN_ACCOUNT }, originOf())
  await edit(stores, done)
  const own = await stores.accounts.find('api')
  const authority = new ConfigAuthority(stores, { authority: 'database', ...next })
  const found = (await driftOf(authority)).map(({ kind, id }) => `${kind}:${id}`)
  assert.deepEqual(found, await differing(stores, first, next))
  assert.deepEqual(await authority.enforce(), await driftOf(authority), 'the database rules')
  assert.deepEqual(
    (await driftOf(authority, 1)).map(({ kind, id }) => `${kind}:${id}`),
    found,
  )
  assert.equal(await authority.rules('account', 'a'), false)

  // Two processes at once.
  const both = [1, 2].map(() => new ConfigAuthority(stores, { authority: 'config', ...next }))
  await Promise.all(both.map((one) => one.enforce()))
  for (const one of both) assert.deepEqual(await driftOf(one), [])
  for (const { id, secret, enabled } of next.keys) {
    const record = await stores.directory.find(hashSecret(secret))
    assert.deepEqual([record?.id, record?.enabled], [id, enabled])
  }
  assert.deepEqual(
    await stores.accounts.find('api'),
    own,
    'what no config has named is nobody’s but the database’s',
  )
  assert.deepEqual(
    [await both[0]?.rules('account', 'api'), await both[0]?.rules('account', next.accounts[0]?.id ?? '')],
    [false, true],
  )
}

const OWN_ACCOUNT = {
  name: null,
  prepaid: true,
  limits: { rpm: 1, tpm: null, concurrency: null },
  regions: null,
  lineRegions: null,
  status: 'active',
} as const

function storesIn(db: Database): Stores {
  return {
    accounts: new SqlAccountStore(db),
    keys: new SqlKeyStore(db),
    directory: new SqlKeyDirectory(db),
    seeds: new SqlSeeds(db),
  }
}

for (const { name, url, skip } of BACKENDS) {
  describe(`config and database: ${name}`, { skip }, () => {
    it('differ in exactly what is listed, and in nothing once the config has ruled', async (t) => {
      const db = await open(t, await url(t))
      await fc.assert(
        fc.asyncProperty(config, config, edits, async (first, next, done) => {
          for (const table of ['keys', 'accounts', 'seeds', 'wallets', 'deposits', 'admin_changes'] as const)
            await db.deleteFrom(table).execute()
          await seedAccountsAndKeys(db, first, { logger: { info() {}, warn() {}, error() {} } })
          await seedAccountsAndKeys(db, next, { logger: { info() {}, warn() {}, error() {} } })
          await tried(storesIn(db), first, next, done)
        }),
        { numRuns: 8 },
      )
    })

    it('are compared in pages of bounded work, however many keys there are', async (t) => {
      const db = await open(t, await url(t))
      const accounts = [{ id: 'acme' }, { id: 'other' }]
      const keys = Array.from({ length: 3000 }, (_, i) => {
        const id = `key_${String(i).padStart(4, '0')}`
        return { id, account: i % 2 ? 'acme' : 'other', secret: `sk-${i}` }
      })
      await seedAccountsAndKeys(db, { accounts, keys })
      const stores = storesIn(db)
      for (const id of ['key_0003', 'key_2998'])
        await stores.keys.change(id, (key) => ({ ...key, note: 'by hand' }), originOf())
      const asked: number[] = []
      const counted = {
        ...stores,
        keys: Object.assign(Object.create(stores.keys) as KeyStore, {
          findAll: (ids: readonly string[]) => {
            asked.push(ids.length)
            return stores.keys.findAll(ids)
          },
          findOwners: (hashes: readonly string[]) => stores.keys.findOwners(hashes),
        }),
      }
      const authority = new ConfigAuthority(counted, { authority: 'database', accounts, keys: keys.slice(1) })
      const first = await authority.drift(10)
      assert.deepEqual(
        first.differences.map(({ id, difference }) => [id, difference]),
        [
          ['key_0000', 'not_in_config'],
          ['key_0003', 'changed'],
        ],
      )
      const comparedFirst = asked.reduce((sum, count) => sum + count, 0)
      assert.ok(comparedFirst <= 2000, `the first page has compared ${comparedFirst} keys`)
      assert.ok(Math.max(...asked) <= 1000)
      const { differences, reached } = await authority.drift(10, first.reached)
      assert.deepEqual([differences.map(({ id }) => id), reached], [['key_2998'], undefined])
    })
  })
}

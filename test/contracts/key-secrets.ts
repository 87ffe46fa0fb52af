import assert from 'node:assert/strict'
import { it } from 'node:test'
import { hashSecret } from '../../lib/middleware/authenticate/index.ts'
import { originOf } from './account-money.ts'
import { FULL_KEY, type KeyStoreUnderTest, newKey, OPEN_KEY } from './key-samples.ts'

/** The contract of every store of keys for their secrets and uses. */
export function keySecretContract(opened: () => KeyStoreUnderTest): void {
  const recordOf = async (secret: string) => opened().directory.find(hashSecret(secret))
  const recorded = async (subject: string) =>
    (await opened().changes.list({ subject, limit: 100 })).toReversed()

  it('gives a key another secret, and the previous one is refused', async () => {
    await opened().keys.create(newKey('k', FULL_KEY), originOf())
    const before = await opened().keys.find('k')
    assert.deepEqual(await opened().keys.rotate('k', hashSecret('sk-new'), originOf()), before)
    assert.equal(await recordOf('sk-k'), undefined)
    assert.equal((await recordOf('sk-new'))?.id, 'k')
    const actions = (await recorded('k')).map(({ action }) => action)
    assert.deepEqual(actions, ['key.created', 'key.rotated'])
    assert.ok(!JSON.stringify(await recorded('k')).includes(hashSecret('sk-new')), 'nothing of the secret')
  })

  it('keeps the previous secret for the time of the overlap, and no earlier one', async () => {
    await opened().keys.create(newKey('k', FULL_KEY), originOf())
    await opened().keys.create(newKey('beside', FULL_KEY), originOf())
    const origin = originOf()
    const rotated = await opened().keys.rotate('k', hashSecret('sk-2'), origin, 60_000)
    assert.equal(rotated?.previousUntil, origin.at + 60_000)
    assert.deepEqual(await opened().keys.find('k'), rotated)
    const former = await recordOf('sk-k')
    assert.deepEqual([former?.id, former?.secretUntil], ['k', origin.at + 60_000])
    assert.deepEqual((await recordOf('sk-2'))?.secretUntil, undefined)
    const all = await opened().directory.findAll?.([hashSecret('sk-k'), hashSecret('sk-2'), hashSecret('x')])
    if (all)
      assert.deepEqual(
        all,
        new Map([
          [hashSecret('sk-k'), former],
          [hashSecret('sk-2'), await recordOf('sk-2')],
        ]),
      )
    assert.equal((await opened().directory.findAll?.([hashSecret('sk-2')]))?.size ?? 1, 1)
    const secrets = ['sk-k', 'sk-2', 'sk-beside', 'x'].map(hashSecret)
    assert.deepEqual(
      await opened().keys.findOwners(secrets),
      new Map([
        [hashSecret('sk-2'), 'k'],
        [hashSecret('sk-beside'), 'beside'],
      ]),
    )
    const change = (await recorded('k')).at(-1)
    assert.equal(
      (change?.after as { previous_secret_expires_at?: string } | undefined)?.previous_secret_expires_at,
      new Date(origin.at + 60_000).toISOString(),
    )
    // Settings that change hold for both secrets.
    await opened().keys.change('k', () => OPEN_KEY, originOf())
    assert.deepEqual([(await recordOf('sk-k'))?.enabled, (await recordOf('sk-2'))?.enabled], [true, true])

    await opened().keys.rotate('k', hashSecret('sk-3'), originOf(), 60_000)
    assert.equal(await recordOf('sk-k'), undefined)
    assert.equal((await recordOf('sk-2'))?.id, 'k')
    await opened().keys.rotate('k', hashSecret('sk-4'), originOf())
    assert.deepEqual([await recordOf('sk-2'), await recordOf('sk-3')], [undefined, undefined])
    assert.equal((await opened().keys.find('k'))?.previousUntil, null)
    assert.equal((await recordOf('sk-beside'))?.id, 'beside')
    assert.equal((await opened().keys.find('beside'))?.previousUntil, null)

    await opened().keys.rotate('k', hashSecret('sk-5'), originOf(), 60_000)
    await opened().keys.delete('k', originOf())
    assert.deepEqual([await recordOf('sk-4'), await recordOf('sk-5')], [undefined, undefined])
  })

  it('is rotated once to the same secret', async () => {
    await opened().keys.create(newKey('k'), originOf())
    await opened().keys.rotate('k', hashSecret('sk-2'), originOf(), 60_000)
    const before = await opened().keys.find('k')
    assert.deepEqual(await opened().keys.rotate('k', hashSecret('sk-2'), originOf()), before)
    assert.equal((await recordOf('sk-k'))?.id, 'k')
    assert.equal((await recorded('k')).length, 2)
  })

  it('moves a key to another account', async () => {
    await opened().keys.create(newKey('k', FULL_KEY), originOf())
    await opened().keys.change('k', (key) => ({ ...key, account: 'globex' }), originOf())
    assert.equal((await opened().keys.find('k'))?.account, 'globex')
    assert.equal((await recordOf('sk-k'))?.account.id, 'globex')
    assert.equal((await recorded('k')).length, 2)
  })

  it('records the last use of a key, and never an earlier one; neither counts as a change', async () => {
    for (const id of ['k', 'beside']) await opened().keys.create(newKey(id), originOf())
    await opened().keys.noteUses(new Map())
    await Promise.all([
      opened().keys.noteUses(
        new Map([
          ['k', 3000],
          ['nobody', 1],
        ]),
      ),
      opened().keys.noteUses(new Map([['k', 5000]])),
      opened().keys.noteUses(new Map([['k', 4000]])),
    ])
    assert.equal((await opened().keys.find('k'))?.lastUsedAt, 5000)
    assert.equal((await opened().keys.find('beside'))?.lastUsedAt, null)
    await opened().keys.change('k', () => FULL_KEY, originOf())
    await opened().keys.rotate('k', hashSecret('sk-2'), originOf())
    assert.equal((await opened().keys.find('k'))?.lastUsedAt, 5000)
    assert.equal((await recorded('k')).length, 3)
  })
}

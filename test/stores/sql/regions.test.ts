import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { accountWallet, type WalletId } from '../../../lib/ledger/index.ts'
import type { HomeStore } from '../../../lib/ledger/regions/region-store.ts'
import { type Database, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { charge, take, voidOf } from '../../contracts/ledger-money.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { mirrored, openRegions, type Regions } from './region-world.ts'

let regions: Regions
const cleanUp = cleaningUp()
if (!WITHOUT_POSTGRES)
  before(async () => {
    regions = await openRegions(cleanUp)
  })

/** A home whose answers are lost, though it has done what it was asked. */
function losing(home: HomeStore, when: () => boolean): HomeStore {
  return {
    ping: () => home.ping(),
    async exchange(...asked) {
      const answer = await home.exchange(...asked)
      if (when()) throw new Error('the answer is lost')
      return answer
    },
  }
}

describe('shares of a region', { skip: WITHOUT_POSTGRES }, () => {
  it('come out of what is available at home, which holds them as leased', async () => {
    const { process, figures, assertSound, ACCOUNT } = await mirrored(regions)
    const supplied = await process().demand(ACCOUNT, 5n, 40n)
    assert.deepEqual(supplied, { moved: 40n, elsewhere: 960n })
    assert.deepEqual(await figures(), { home: [1000n, 0n, 40n], region: [40n, 0n, 0n] })
    await assertSound()
  })

  it('are at most a tenth of that beyond what calls need, and nothing if those cannot be covered', async () => {
    const { process, figures, ACCOUNT } = await mirrored(regions)
    const here = process()
    assert.equal((await here.demand(ACCOUNT, 5n, 900n))?.moved, 100n)
    assert.equal((await here.demand(ACCOUNT, 600n, 600n))?.moved, 500n)
    assert.deepEqual(await here.demand(ACCOUNT, 1001n, 1001n), { moved: 0n, elsewhere: 400n })
    assert.deepEqual((await figures()).region, [600n, 0n, 0n])
  })

  it('are reported as spent at home, voids too, and are unknown where nobody has copied the wallet', async () => {
    const { process, figures, assertSound, us, account, key, ACCOUNT, KEY } = await mirrored(regions, {
      quota: '0.0000005',
    })
    const here = process()
    await Promise.all([here.demand(ACCOUNT, 100n, 100n), here.demand(KEY, 50n, 50n)])
    const ledger = new SqlLedger(us)
    const undone = charge(account, 9n, { key })
    await ledger.settle([charge(account, 30n, { key }), undone])
    const report = (wallet: WalletId) => [{ wallet, need: 0n, want: 0n, give: 0n }]
    await here.exchange([...report(ACCOUNT), ...report(KEY)])
    assert.deepEqual((await figures()).home, [1000n, 39n, 61n])
    await ledger.settle([voidOf(undone)])
    await here.exchange([...report(ACCOUNT), ...report(KEY)])
    assert.deepEqual((await figures()).home, [1000n, 30n, 70n])
    assert.deepEqual((await figures('key')).home, [500n, 30n, 20n])
    assert.equal(await here.demand(accountWallet('globex'), 5n, 5n), undefined)
    await assertSound()
  })

  it('that were spent beyond what was received are made up for at home, and filled first', async () => {
    const { process, figures, assertSound, us, account, ACCOUNT } = await mirrored(regions)
    const here = process()
    await here.demand(ACCOUNT, 10n, 10n)
    await new SqlLedger(us).settle([charge(account, 25n)])
    await here.exchange([{ wallet: ACCOUNT, need: 0n, want: 0n, give: 0n }])
    assert.deepEqual((await figures()).home, [1000n, 25n, 0n])
    await assertSound()
    assert.equal((await here.demand(ACCOUNT, 20n, 20n))?.moved, 35n)
    assert.deepEqual(await figures(), { home: [1000n, 25n, 20n], region: [45n, 25n, 0n] })
    await assertSound()
  })

  it('go back as far as they are neither leased nor spent, and home can spend them again', async () => {
    const { process, figures, assertSound, home, us, account, ACCOUNT } = await mirrored(regions)
    const here = process()
    await here.demand(ACCOUNT, 100n, 100n)
    const ledger = new SqlLedger(us)
    await ledger.settle([charge(account, 20n)])
    await ledger.change('p', [take('l', ACCOUNT, 30n)])
    await here.exchange([{ wallet: ACCOUNT, need: 0n, want: 0n, give: 1000n }])
    assert.deepEqual(await figures(), { home: [1000n, 20n, 30n], region: [50n, 20n, 30n] })
    const [taken] = await new SqlLedger(home).change('q', [take('m', ACCOUNT, 950n)])
    assert.equal(taken?.moved, 950n)
    await assertSound()
  })

  it('arrive with the next exchange if the process died between the two halves of a transfer', async () => {
    const { process, figures, assertSound, atHome, ACCOUNT } = await mirrored(regions)
    let isLost = true
    const dying = process(losing(atHome, () => isLost))
    await assert.rejects(dying.demand(ACCOUNT, 50n, 50n))
    assert.deepEqual(await figures(), { home: [1000n, 0n, 50n], region: [0n, 0n, 0n] })
    await assertSound()
    isLost = false
    const next = await process().demand(ACCOUNT, 50n, 50n)
    assert.deepEqual(next, { moved: 50n, elsewhere: 950n })
    assert.deepEqual(await figures(), { home: [1000n, 0n, 50n], region: [50n, 0n, 0n] })
    await assertSound()
  })

  it('that were on their way back arrive, once, if the process died before home knew, or the answer was lost', async () => {
    const { process, figures, assertSound, atHome, ACCOUNT, shares } = await mirrored(regions)
    await process().demand(ACCOUNT, 80n, 80n)
    await shares.us.prepare([{ wallet: ACCOUNT, give: 30n }])
    assert.deepEqual(await figures(), { home: [1000n, 0n, 80n], region: [50n, 0n, 0n] })
    await assertSound()
    const give = (amount: bigint) => [{ wallet: ACCOUNT, need: 0n, want: 0n, give: amount }]
    await assert.rejects(process(losing(atHome, () => true)).exchange(give(0n)))
    assert.deepEqual((await figures()).home, [1000n, 0n, 50n])
    await process().exchange(give(10n))
    assert.deepEqual(await figures(), { home: [1000n, 0n, 40n], region: [40n, 0n, 0n] })
    await assertSound()
  })

  it('are the same however often, and however late, a report comes', async () => {
    const { process, figures, assertSound, atHome, ACCOUNT, shares } = await mirrored(regions)
    const [early] = await shares.us.prepare([{ wallet: ACCOUNT, give: 0n }])
    assert.ok(early)
    const request = { ...early, need: 7n, want: 7n }
    await Promise.all([1, 2, 3].map(() => atHome.exchange('us', [request], 1)))
    assert.deepEqual((await figures()).home, [1000n, 0n, 7n])
    // What is on its way comes first.
    assert.equal((await process().demand(ACCOUNT, 20n, 20n))?.moved, 7n)
    assert.equal((await process().demand(ACCOUNT, 20n, 20n))?.moved, 20n)
    await atHome.exchange('us', [{ ...request, spent: 500n, returned: 5n }], 1)
    assert.deepEqual(await figures(), { home: [1000n, 0n, 27n], region: [27n, 0n, 0n] })
    await assertSound()
  })

  it('never come to more than the account has, with two processes of each of two regions at once', async () => {
    const { process, assertSound, home, us, asia, atHome, account, key, ACCOUNT, mirrors } = await mirrored(
      regions,
      { balance: '0.0000003' },
    )
    await mirrors.asia.copy('eu', await atHome.keysById([key]))
    const inAsia = () => process(atHome, 'asia')
    const all = [process(), process(), inAsia(), inAsia()]
    for (let round = 0; round < 10; round++)
      await Promise.all(
        all.map(async (each, i) => {
          await each.demand(ACCOUNT, 15n, 25n).catch(() => {})
          const ledger = new SqlLedger(i < 2 ? us : asia)
          const requestId = randomUUID()
          const [lease] = await ledger.change(`p${i}`, [take(requestId, ACCOUNT, 8n)])
          const draws = [{ lease: requestId, wallet: ACCOUNT, amount: 8n }]
          if (lease?.moved) await ledger.settle([charge(account, 8n, { requestId, draws })])
          await each.exchange([{ wallet: ACCOUNT, need: 0n, want: 0n, give: 5n }])
        }),
      )
    await Promise.all(all.map((each) => each.exchange([{ wallet: ACCOUNT, need: 0n, want: 0n, give: 0n }])))
    const spentIn = async (db: Database) => (await new SqlLedger(db).wallets([ACCOUNT]))[0]?.spent ?? 0n
    const inAll = (await spentIn(us)) + (await spentIn(asia))
    assert.ok(inAll > 50n && inAll <= 300n, `${inAll} of 300`)
    assert.equal(await spentIn(home), inAll)
    await assertSound()
  })
})

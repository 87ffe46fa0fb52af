import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet, keyWallet } from '../../../lib/ledger/index.ts'
import { assertSound, charge, fresh, take } from '../../contracts/ledger-money.ts'
import { created, intentOf, NOON, payer } from '../../contracts/task-samples.ts'
import { TASK_BACKENDS } from './support/task-backends.ts'

const WORKERS = 8
const ROUNDS = 6

for (const { name, skip, open } of TASK_BACKENDS) {
  describe(`video tasks beside calls on ${name}`, { skip }, () => {
    it('wait for each other and never fail, whatever they hold on the same wallets', async (t) => {
      const tested = await open(t)
      const { ledger, stores } = tested
      const who = await payer(tested, 1_000_000n, 1_000_000n)
      const wallets = [accountWallet(who.account), keyWallet(who.key)]

      const makeVideo = async (round: number, worker: number) => {
        const store = stores[worker % stores.length] ?? stores[0]
        const other = stores[(worker + 1) % stores.length] ?? stores[0]
        const intent = intentOf(who)
        assert.equal((await store.intend(intent)).kind, 'held')
        if (round % 3 === 2) return store.withdraw(intent.id)
        await other.created(intent.id, created(), NOON)
        const seen = { state: round % 3 === 0 ? 'succeeded' : 'failed' } as const
        await Promise.all([store.observe(intent.id, seen, NOON), other.observe(intent.id, seen, NOON)])
      }
      const makeCalls = async () => {
        const leases = wallets.map((wallet) => ({ wallet, id: fresh('lease') }))
        await ledger.change(
          'p',
          leases.map(({ id, wallet }) => take(id, wallet, 20n)),
        )
        const draws = leases.map(({ id: lease, wallet }) => ({ lease, wallet, amount: 20n }))
        await ledger.settle([charge(who.account, 15n, { key: who.key, draws })])
      }
      await Promise.all(
        Array.from({ length: WORKERS }, async (_, worker) => {
          for (let round = 0; round < ROUNDS; round++) {
            await (worker % 2 ? makeCalls() : makeVideo(round, worker))
          }
        }),
      )
      const videos = BigInt((WORKERS / 2) * (ROUNDS / 3)) * 85n
      const calls = BigInt((WORKERS / 2) * ROUNDS) * 15n
      const [account, key] = await ledger.wallets(wallets)
      assert.deepEqual([account?.spent, key?.spent], [videos + calls, videos + calls])
      assert.deepEqual([account?.leased, key?.leased], [0n, 0n])
      await assertSound(ledger)
    })
  })
}

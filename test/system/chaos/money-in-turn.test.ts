import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { booksOf, headersOf, paidGateways, pay, shutDown } from './paid-gateways.ts'

const FIT = 90
/** By process: more than fits, then a few of another key. */
const GREEDY = 100
const MODEST = 10
/** Accounts to try it on: a round in which the machine was too slow for calls to wait shows nothing. */
const ROUNDS = 5
const rounds = Array.from({ length: ROUNDS }, (_, i) => i)

const CONFIG = {
  accounts: rounds.map((round) => ({ id: `acme-${round}`, balance: `${FIT}` })),
  keys: rounds.flatMap((round) =>
    ['greedy', 'modest'].map((key) => ({ id: `${key}-${round}`, account: `acme-${round}` })),
  ),
  price: { perRequest: '1' },
}

/** Until the answer is called nobody can change the account: all calls that come wait for the ledger. */
async function holdUpLedger(databaseUrl: string, account: string): Promise<() => Promise<void>> {
  const db = await openDatabase(databaseUrl, { logger: recordingLogger() })
  const held = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const transaction = db.transaction().execute(async (trx) => {
    await trx.updateTable('wallets').set({ overrun: 0n }).where('id', '=', `account:${account}`).execute()
    held.resolve()
    await over.promise
  })
  await Promise.race([held.promise, transaction])
  return async () => {
    over.resolve()
    await transaction
    await db.destroy()
  }
}

/** Resolves when what was sent before surely was read. */
async function probe({ url }: GatewayProcess, key: string): Promise<void> {
  const response = await fetch(`${url}/v1/models`, { headers: headersOf({ key }) })
  assert.equal(response.status, 200)
  await response.arrayBuffer()
}

for (const { name, url, skip } of BACKENDS) {
  describe(`keys of one account over two processes on one ${name}`, { skip }, () => {
    it('are served in turn: one that asks for more than there is leaves the other its few calls', async (t) => {
      const databaseUrl = await url(t)
      const world = await paidGateways(t, databaseUrl, CONFIG, (res) => chatAnswer(res))
      const gateways = await Promise.all([world.start(), world.start()])
      const all: { key: string; status: number | undefined; code: string | undefined }[] = []

      const playRound = async (round: number) => {
        const [greedy, modest] = [`greedy-${round}`, `modest-${round}`]
        for (const gateway of gateways) for (const key of [greedy, modest]) await probe(gateway, key)
        const letGo = await holdUpLedger(databaseUrl, `acme-${round}`)
        const call = async (gateway: GatewayProcess, key: string) => {
          const answer = await pay(gateway, { text: key, key })
          return { key, status: answer?.status, code: answer?.errorCode }
        }
        // The first makes its process ask the ledger; the others gather behind it, those of the greedy key in front.
        const calls = gateways.map((gateway) => call(gateway, greedy))
        await Promise.all(gateways.map((gateway) => probe(gateway, greedy)))
        await sleep(50)
        for (const gateway of gateways) {
          for (let i = 1; i < GREEDY; i++) calls.push(call(gateway, greedy))
          for (let i = 0; i < MODEST; i++) calls.push(call(gateway, modest))
        }
        await Promise.all(gateways.map((gateway) => probe(gateway, modest)))
        await sleep(100)
        await letGo()
        return Promise.all(calls)
      }

      let ended: typeof all = []
      for (const round of rounds) {
        ended = await playRound(round)
        all.push(...ended)
        if (!ended.some(({ code }) => code === 'billing_unavailable')) break
      }
      await shutDown(gateways)
      const served = ended.filter(({ status }) => status === 200)
      const ofModest = served.filter(({ key }) => key.startsWith('modest'))
      t.diagnostic(
        `greedy ${served.length - ofModest.length}, modest ${ofModest.length}, of ${all.length} calls`,
      )
      // The process that comes too late to the ledger serves neither.
      assert.ok(ofModest.length >= MODEST, `${ofModest.length} of the modest key`)
      assert.ok(served.length >= 86 && served.length <= FIT, `${served.length} of ${FIT}`)
      for (const { status, code } of ended) {
        if (status === 200) continue
        assert.match(`${status} ${code}`, /^(402 insufficient_balance|503 quota_lease_exhausted)$/)
      }
      const { violations, charged, leased } = await booksOf(databaseUrl)
      assert.deepEqual(violations, [])
      assert.equal(charged.size, all.filter(({ status }) => status === 200).length)
      assert.equal(leased, 0n)
    })
  })
}

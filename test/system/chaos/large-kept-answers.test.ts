import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, SqlCallStore } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { chatAnswer, chatEvents, stream } from '../../support/scripted-upstream.ts'
import { booksOf, paidGateways, pay, sawEnd, shutDown } from './paid-gateways.ts'
import { assertUndisturbed, steadyLoad } from './steady-load.ts'

const LARGE = 'x'.repeat(7_000_000)
const PIECES = Array.from({ length: 100 }, (_, i) => `${i} ${'y'.repeat(60_000)}`)
const ALONE_MS = 2000
const AT_ONCE = 3
const ROUNDS = 4

const CONFIG = {
  accounts: [
    { id: 'greedy', balance: '1000' },
    { id: 'steady', balance: '1000' },
  ],
  keys: [
    { id: 'g', account: 'greedy' },
    { id: 's', account: 'steady' },
  ],
  price: { perRequest: '0.01' },
}

describe('large kept answers of one account', { timeout: 240_000 }, () => {
  for (const { name, url, skip } of BACKENDS) {
    it(`show in no other account's calls, and are kept whole: ${name}`, { skip }, async (t) => {
      const heldUp = watchHeldUp(t)
      const databaseUrl = await url(t)
      const world = await paidGateways(t, databaseUrl, CONFIG, (res, { json }) => {
        const text = String(json.messages[0]?.content)
        if (text.startsWith('large')) {
          if (json.stream) void stream(res, chatEvents(PIECES))
          else chatAnswer(res, LARGE)
        } else chatAnswer(res)
      })
      const gateway = await world.start()
      const keyed = (i: number) => ({ key: 's', idempotencyKey: `s-${i}` })
      await pay(gateway, { text: 'warm', ...keyed(0) })
      await steadyLoad(gateway, { key: 's' }, sleep(1000))
      const alone = await steadyLoad(gateway, { key: 's' }, sleep(ALONE_MS))

      let made = 0
      const kept = new Map<string, string>()
      const attack = async () => {
        for (let round = 0; round < ROUNDS; round++) {
          const calls = Array.from({ length: AT_ONCE }, () => {
            const text = `large ${++made}`
            return { text, key: 'g', idempotencyKey: text, ...(made % 2 && { stream: true }) }
          })
          const answers = await Promise.all(calls.map((call) => pay(gateway, call)))
          for (const [i, call] of calls.entries()) {
            const answer = answers[i]
            assert.ok(sawEnd(call, answer), `${call.text}: ${answer?.status} ${answer?.text.slice(-200)}`)
            kept.set(answer.requestId, answer.text)
          }
        }
      }
      const attacking = attack()
      const [beside] = await Promise.all([
        steadyLoad(gateway, { key: 's' }, attacking),
        // Its own kept answers wait for no turn of the other account.
        (async () => {
          for (let i = 1; i < 5; i++)
            assert.equal((await pay(gateway, { text: 'warm', ...keyed(i) }))?.status, 200)
        })(),
        attacking,
      ])
      t.diagnostic(`${name}: alone ${JSON.stringify(alone)}, beside ${JSON.stringify(beside)}`)
      assertUndisturbed(beside, alone, heldUp())
      await shutDown([gateway])
      const { violations, charged } = await booksOf(databaseUrl)
      assert.deepEqual(violations, [])
      const db = await openDatabase(databaseUrl, { logger: recordingLogger(), readOnly: true })
      t.after(() => db.destroy())
      const calls = new SqlCallStore(db)
      for (const [id, text] of kept) {
        assert.equal(charged.get(id), 10_000_000n)
        assert.ok((await calls.find(id))?.response_body === text, `${id} is kept whole`)
      }
    })
  }
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import type { Exchange } from '../../support/exchange.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { chatAnswer, chatEvents, stream } from '../../support/scripted-upstream.ts'
import { booksOf, type PaidCall, paidGateways, pay, shutDown } from './paid-gateways.ts'

/** At the same moment. */
const CALLERS = 150

const CONFIG = {
  accounts: [{ id: 'acme', balance: '1000' }],
  keys: [{ id: 'k', account: 'acme' }],
  price: { perRequest: '1' },
}

/** Returns the answers to one caller, which asks again until it knows what became of its key. */
async function insist(gateway: GatewayProcess, call: PaidCall): Promise<Exchange[]> {
  const answers: Exchange[] = []
  for (const until = performance.now() + 30_000; performance.now() < until; await sleep(300)) {
    const answer = await pay(gateway, call)
    assert.ok(answer)
    answers.push(answer)
    if (answer.status === 200 || answer.errorCode === 'idempotency_key_replayed') break
  }
  return answers
}

for (const { name, url, skip } of BACKENDS) {
  describe(`${CALLERS} calls with one Idempotency-Key over two processes on one ${name}`, { skip }, () => {
    it('run once and are charged once, plain and streamed', async (t) => {
      const databaseUrl = await url(t)
      const world = await paidGateways(t, databaseUrl, CONFIG, async (res, { json }) => {
        await sleep(200)
        if (json.stream) await stream(res, chatEvents(['Hello', ' there']), { paceMs: 20 })
        else chatAnswer(res)
      })
      const gateways = await Promise.all([world.start(), world.start()])
      const charged: [string | undefined, bigint][] = []
      for (const streams of [false, true]) {
        const idempotencyKey = streams ? 'streamed' : 'plain'
        const call: PaidCall = { text: idempotencyKey, key: 'k', stream: streams, idempotencyKey }
        const told = await Promise.all(
          Array.from({ length: CALLERS }, (_, i) => insist(gateways[i % 2]!, call)),
        )
        const winners = told.flat().filter(({ status }) => status === 200)
        assert.equal(winners.length, 1)
        charged.push([winners[0]?.requestId, 1_000_000_000n])
        for (const answers of told) {
          const last = answers.at(-1)
          if (last?.status === 200) continue
          assert.equal(last?.errorCode, 'idempotency_key_replayed')
          assert.equal(last.envelope().error.details?.original_request_id, winners[0]?.requestId)
        }
        const codes = new Set<string>()
        for (const { status, errorCode, text } of told.flat()) {
          codes.add(status === 200 ? '200' : `${status} ${errorCode}`)
          if (status === 409) assert.match(`${errorCode}`, /^idempotency_key_(in_use|replayed)$/)
          // On a machine that is too slow to look the key up in time.
          else if (status !== 200) assert.match(text, /could not be checked, so nothing was run/)
        }
        t.diagnostic([...codes].join(', '))
      }
      await shutDown(gateways)

      assert.equal(world.upstream.requests.length, 2)
      const books = await booksOf(databaseUrl)
      assert.deepEqual(books.violations, [])
      assert.deepEqual(new Map(books.charged), new Map(charged as [string, bigint][]))
      assert.deepEqual([books.voided.size, books.leased], [0, 0n])
    })
  })
}

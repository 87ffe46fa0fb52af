import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { readExchange } from '../../support/exchange.ts'
import { chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { billedGateway } from './billed-gateway.ts'

const PRICE = { inputPerMillion: '1', outputPerMillion: '10' }
const BODY = {
  model: 'chat',
  messages: [{ role: 'user', content: 'Say hello' }],
  max_tokens: 100,
  stream_options: { include_usage: true },
}
const WINDOW = 1_000_000

describe('the usage that an upstream reports', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  /** Calls once, with this report, and returns the entry and what the account is left with. */
  async function charged(
    t: Parameters<typeof billedGateway>[0],
    usage: object,
    { balance, streams = false, price = PRICE }: { balance: string; streams?: boolean; price?: object },
  ) {
    upstream.script = (res) => {
      if (!streams) return chatAnswer(res, 'Hello', { usage })
      const report = `data: ${JSON.stringify({ choices: [], usage })}\n\n`
      return stream(
        res,
        chatEvents(['Hel', 'lo']).map((event) => (event.includes('"usage"') ? report : event)),
      )
    }
    const gateway = await billedGateway(t, {
      lines: [{ url: upstream.url, price }],
      model: { price: {}, contextWindow: WINDOW },
      balance,
    })
    const { stream_options, ...plain } = BODY
    const body = streams ? { ...plain, stream_options, stream: true } : plain
    const got = await readExchange(await gateway.post('/v1/chat/completions', body))
    const entry = await gateway.entry(got.requestId)
    const { spent } = await gateway.books()
    const [wallet] = await gateway.ledger.wallets([accountWallet('acme')])
    const warned = gateway.logger.lines.filter(({ level }) => level === 'warn')
    return { got, entry, spent, warned, left: (wallet?.funds ?? 0n) - (wallet?.spent ?? 0n) }
  }

  for (const streams of [false, true]) {
    const of = streams ? 'of a stream' : 'of an answer'
    it(`${of} beyond the window and the model's maximum costs these, and is kept`, async (t) => {
      const usage = { prompt_tokens: WINDOW + 1, completion_tokens: 5_000_000 }
      const { entry, spent, warned } = await charged(t, usage, { balance: '1000', streams })
      assert.equal(entry.usage?.source, 'bounded')
      assert.deepEqual(entry.usage.reported, { input_tokens: WINDOW + 1, output_tokens: 5_000_000 })
      assert.deepEqual([entry.usage.input_tokens, entry.usage.output_tokens], [WINDOW, 1000])
      assert.deepEqual([spent, entry.billing?.charged], ['1.01', '1.01'])
      assert.equal(warned.length, 1)
    })

    it(`${of} beyond the request's maximum is charged and shown in full`, async (t) => {
      const usage = { prompt_tokens: 7, completion_tokens: 1000 }
      const { got, entry, spent, warned } = await charged(t, usage, { balance: '1000', streams })
      assert.deepEqual([entry.usage?.output_tokens, entry.usage?.source], [1000, 'measured'])
      assert.deepEqual([spent, warned], ['0.010007', []])
      assert.match(got.text, /"completion_tokens":1000\b/)
    })

    it(`${of} within the window is charged in full where the account has it`, async (t) => {
      const usage = { prompt_tokens: WINDOW, completion_tokens: 100 }
      const { entry, spent } = await charged(t, usage, { balance: '1000', streams })
      assert.deepEqual([entry.usage?.source, entry.usage?.reported, spent], ['measured', undefined, '1.001'])
    })

    it(`${of} takes no account further below zero than one reservation`, async (t) => {
      await fc.assert(
        fc.asyncProperty(
          fc.nat(2 * WINDOW),
          fc.nat(1000),
          fc.integer({ min: 1, max: 400 }),
          async (input, output, cents) => {
            const usage = { prompt_tokens: input, completion_tokens: output }
            const balance = `0.0${String(cents).padStart(3, '0')}`
            const { got, entry, left } = await charged(t, usage, { balance, streams })
            if (got.status === 402) return
            assert.equal(got.status, 200)
            const { reserved, charged: amount, items } = entry.billing ?? {}
            assert.ok(
              left >= -parseAmount(reserved ?? '0'),
              `${left} is left of ${balance}, ${reserved} was held`,
            )
            const isBounded = items?.some(({ unit }) => unit === 'bounded') ?? false
            if (isBounded) assert.equal(entry.usage?.source, 'bounded')
            let sum = 0n
            for (const { unit, quantity, price } of items ?? [])
              sum += BigInt(quantity) * parseAmount(price) * (unit === 'bounded' ? 1_000_000n : 1n)
            assert.equal((sum + 500_000n) / 1_000_000n, parseAmount(amount ?? '0'), 'the items add up')
          },
        ),
        { numRuns: 15 },
      )
    })
  }
})

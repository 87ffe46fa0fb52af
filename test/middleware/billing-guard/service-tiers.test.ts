import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatAmount, parseAmount } from '../../../lib/core/catalog/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { readExchange } from '../../support/exchange.ts'
import { messageItem, responseBody, responseEvents } from '../../support/responses-upstream.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  messageEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { billedGateway } from './billed-gateway.ts'

/** Nano-units per token of input and output, by the tier of service. */
const PER_TOKEN = {
  usual: [1000n, 10_000n],
  priority: [2000n, 20_000n],
  flex: [500n, 5000n],
  fast: [6000n, 60_000n],
} as const
type Tier = keyof typeof PER_TOKEN

const perMillion = (tier: Tier, times: bigint) => ({
  inputPerMillion: formatAmount(PER_TOKEN[tier][0] * times * 1_000_000n),
  outputPerMillion: formatAmount(PER_TOKEN[tier][1] * times * 1_000_000n),
})
const pricesTimes = (times: bigint) => ({
  ...perMillion('usual', times),
  tiers: (['priority', 'flex', 'fast'] as const).map((tier) => ({
    serviceTier: tier,
    ...perMillion(tier, times),
  })),
})
const priceOf = (tier: Tier, input: number, output: number): bigint =>
  BigInt(input) * PER_TOKEN[tier][0] + BigInt(output) * PER_TOKEN[tier][1]

/** The tier that a line reports, and the tier that is asked for, by the caller's protocol. */
const PROTOCOLS = {
  chat: {
    path: '/v1/chat/completions',
    line: { endpoints: ['chat/completions'] },
    body: { messages: [{ role: 'user', content: 'Hi' }] },
    tiers: { usual: 'default', priority: 'priority', flex: 'flex' },
  },
  messages: {
    path: '/v1/messages',
    line: { protocol: 'anthropic' },
    body: { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1000 },
    tiers: { usual: 'standard', priority: 'priority', fast: 'fast' },
  },
  responses: {
    path: '/v1/responses',
    line: { endpoints: ['responses'] },
    body: { input: 'Hi' },
    tiers: { usual: 'default', priority: 'priority', flex: 'flex' },
  },
} as const

/** The members that ask for a tier, and that report it. */
const membersOf = (tier: string | undefined): Record<string, unknown> =>
  tier === 'fast' ? { speed: 'fast' } : tier === undefined ? {} : { service_tier: tier }

/** Answers and reports the tier that was served; breaks off in the middle of a stream if that is undefined. */
const scriptOf = (served: string | undefined): UpstreamScript => {
  const told = membersOf(served)
  const part = JSON.stringify(told).slice(1, -1)
  const sent = (events: readonly string[]) => (served === undefined ? events.slice(0, -3) : events)
  return (res, { path, json: { stream: streams } }) => {
    const words = ['Hel', 'lo']
    if (path.endsWith('/chat/completions')) {
      if (!streams) return chatAnswer(res, 'Hello', told)
      const events = chatEvents(words).map((event) => event.replace('{', part === '' ? '{' : `{${part},`))
      return stream(res, sent(events))
    }
    if (path.endsWith('/messages')) {
      if (!streams)
        return messageAnswer(res, 'Hello', { usage: { input_tokens: 7, output_tokens: 2, ...told } })
      const usage = JSON.stringify({ input_tokens: 7, output_tokens: 1, ...told })
      const events = messageEvents(words).map((event) =>
        event.replace('{"input_tokens":7,"output_tokens":1}', served === undefined ? '{}' : usage),
      )
      return stream(res, sent(events))
    }
    const extra = { usage: { input_tokens: 7, output_tokens: 2 }, ...told }
    if (streams) return stream(res, sent(responseEvents(words, extra)))
    answerJson(res, 200, responseBody([messageItem('Hello')], extra))
  }
}

describe('a call is charged at the prices of the tier of service', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  for (const [name, { path, line, body, tiers }] of Object.entries(PROTOCOLS)) {
    const open = (t: Parameters<typeof billedGateway>[0]) =>
      billedGateway(t, {
        lines: [{ url: upstream.url, ...line, price: pricesTimes(2n), cost: pricesTimes(1n) }],
        balance: '1000',
      })
    for (const streams of [false, true])
      it(`that its line served it in: ${name}, ${streams ? 'a stream' : 'an answer'}`, async (t) => {
        const gateway = await open(t)
        let spent = 0n
        for (const [asked, word] of [['none', undefined] as const, ...Object.entries(tiers)])
          for (const [served, told] of Object.entries(tiers) as [Tier, string][]) {
            upstream.script = scriptOf(told)
            const given = { model: 'chat', stream: streams, ...body, ...membersOf(word) }
            const got = await readExchange(await gateway.post(path, given))
            assert.equal(got.status, 200, got.text)
            const { usage, billing } = await gateway.entry(got.requestId)
            const { input_tokens: input = 0, output_tokens: output = 0 } = usage ?? {}
            const cost = priceOf(served, input, output)
            assert.deepEqual(
              [billing?.charged, billing?.cost],
              [formatAmount(2n * cost), formatAmount(cost)],
              `asked for ${asked}, served in ${served}`,
            )
            if (asked === served) assert.ok(parseAmount(billing?.reserved ?? '0') >= 2n * cost)
            spent += 2n * cost
          }
        assert.equal((await gateway.books()).spent, formatAmount(spent))
      })

    it(`that its line names in other letters: ${name}`, async (t) => {
      const gateway = await open(t)
      for (const [served, told] of Object.entries(tiers) as [Tier, string][]) {
        if (served === 'fast') continue
        upstream.script = scriptOf(told.toUpperCase())
        const got = await readExchange(await gateway.post(path, { model: 'chat', ...body }))
        const { usage, billing } = await gateway.entry(got.requestId)
        const { input_tokens: input = 0, output_tokens: output = 0 } = usage ?? {}
        assert.equal(billing?.charged, formatAmount(2n * priceOf(served, input, output)), told)
        assert.equal(usage?.service_tier, served === 'usual' ? undefined : served)
      }
    })

    it(`that it asks for, if the answer breaks off before its line names one: ${name}`, async (t) => {
      const gateway = await open(t)
      upstream.script = scriptOf(undefined)
      for (const [asked, word] of Object.entries(tiers) as [Tier, string][]) {
        const given = { model: 'chat', stream: true, ...body, ...membersOf(word) }
        const got = await readExchange(await gateway.post(path, given))
        const { usage, billing } = await gateway.entry(got.requestId)
        const { input_tokens: input = 0, output_tokens: output = 0 } = usage ?? {}
        assert.ok(output > 0)
        assert.equal(billing?.charged, formatAmount(2n * priceOf(asked, input, output)), asked)
      }
    })
  }

  for (const breaksOff of [true, false])
    it(`that its line has named, if its stream ${breaksOff ? 'breaks off' : 'ends'} without usage`, async (t) => {
      const { path, line, body, tiers } = PROTOCOLS.chat
      for (const asked of [undefined, ...Object.values(tiers)]) {
        // Another one each time: a line whose streams break off rests.
        const gateway = await billedGateway(t, {
          lines: [{ url: upstream.url, ...line, price: pricesTimes(2n), cost: pricesTimes(1n) }],
          balance: '1000',
        })
        for (const [served, told] of Object.entries(tiers) as [Tier, string][]) {
          upstream.script = (res) => {
            const events = chatEvents(['Hel', 'lo']).map((event) =>
              event.replace('{', `{"service_tier":"${told}",`),
            )
            const silent = events.filter((event) => !event.includes('prompt_tokens'))
            return stream(res, breaksOff ? silent.slice(0, -2) : silent)
          }
          const given = { model: 'chat', stream: true, ...body, ...membersOf(asked) }
          const got = await readExchange(await gateway.post(path, given))
          const { usage, billing } = await gateway.entry(got.requestId)
          const { input_tokens: input = 0, output_tokens: output = 0 } = usage ?? {}
          assert.equal(usage?.source, 'estimated')
          assert.ok(output > 0)
          const due = formatAmount(2n * priceOf(served, input, output))
          assert.equal(billing?.charged, due, `asked for ${asked}, served in ${served}`)
        }
      }
    })
})

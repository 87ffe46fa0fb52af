import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { durationText, setLimitHeaders, timeText } from '../../../lib/middleware/rate-limit/limit-headers.ts'
import { demand, limit } from './demands.ts'
import { limitedApp } from './limited-app.ts'

const limitHeadersOf = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit')))

describe('limit headers', () => {
  it('contain the tightest limit of each kind, on successes and refusals', async (t) => {
    const app = await limitedApp(t, { keyRpm: 2, rpm: 100, keyTpm: 1000, tpm: 500 })
    const first = await app.ask({ tokens: 100 })
    const {
      'x-ratelimit-reset-requests': requests,
      'x-ratelimit-reset-tokens': tokens,
      ...rest
    } = limitHeadersOf(first.headers)
    assert.deepEqual(rest, {
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-limit-tokens': '500',
      'x-ratelimit-remaining-tokens': '400',
    })
    assert.match(`${requests}`, /^(1m0s|59s|58s)$/)
    assert.match(`${tokens}`, /^(1m0s|59s|58s)$/)
    await app.ask({ tokens: 100 })
    const refused = await app.ask({ tokens: 100 })
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '0')
    assert.equal(refused.headers.get('x-ratelimit-remaining-tokens'), '300')
  })

  it("are named and worded as Anthropic's on its protocol", async (t) => {
    const app = await limitedApp(t, { keyRpm: 2, tpm: 500 })
    const started = Math.floor(Date.now() / 1000) * 1000
    const { headers } = await app.ask({ tokens: 100, path: '/v1/messages' })
    const {
      'anthropic-ratelimit-requests-reset': requests,
      'anthropic-ratelimit-tokens-reset': tokens,
      ...rest
    } = limitHeadersOf(headers)
    assert.deepEqual(rest, {
      'anthropic-ratelimit-requests-limit': '2',
      'anthropic-ratelimit-requests-remaining': '1',
      'anthropic-ratelimit-tokens-limit': '500',
      'anthropic-ratelimit-tokens-remaining': '400',
    })
    for (const reset of [requests, tokens]) {
      assert.match(`${reset}`, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      const ms = Date.parse(`${reset}`) - started
      assert.ok(ms >= 60_000 && ms <= 75_000, `${ms}`)
    }
  })

  it('are left out for a kind without a limit', async (t) => {
    const app = await limitedApp(t, { concurrency: 5, rpm: 10 })
    assert.deepEqual(Object.keys(limitHeadersOf((await app.ask()).headers)).sort(), [
      'x-ratelimit-limit-requests',
      'x-ratelimit-remaining-requests',
      'x-ratelimit-reset-requests',
    ])
  })

  it('write durations as OpenAI does', () => {
    const texts = [0, 1, 250, 999.2, 1000, 1001, 59_000, 59_001, 60_000, 61_000, 360_000].map(durationText)
    assert.deepEqual(texts, ['0ms', '1ms', '250ms', '1s', '1s', '2s', '59s', '1m0s', '1m0s', '1m1s', '6m0s'])
  })

  it('write durations of any length so that their parts add up', () => {
    const DAY = 86_400
    const lengths = Array.from({ length: 400 }, (_, i) => i * 59 + (i % 7))
    for (const seconds of [...lengths, 3599, 3600, 3601, 3661, 7199, DAY - 1, DAY, DAY + 61, 31 * DAY]) {
      const text = durationText(seconds * 1000)
      const parts = /^(?:(\d+)h)?(?:(\d+)m)?(\d+)(m?s)$/.exec(text)
      const [hours, minutes, rest] = [1, 2, 3].map((i) => Number(parts?.[i] ?? 0)) as [number, number, number]
      assert.equal(parts?.[4], seconds === 0 ? 'ms' : 's', text)
      assert.equal(hours * 3600 + minutes * 60 + rest, seconds, text)
      assert.ok(rest < 60 && minutes < 60, text)
      assert.equal(parts?.[1] !== undefined, seconds >= 3600, text)
      assert.equal(parts?.[2] !== undefined, seconds >= 60, text)
    }
  })

  it('contain the limit that refuses, else the one with the least left, else the first', () => {
    const used = (kind: 'rpm' | 'tpm', name: string, max: number, used: number) => ({
      charge: limit(kind, name, max),
      count: { used, resetMs: used * 1000 },
    })
    const rows = [
      used('tpm', 'a', 50, 10),
      used('rpm', 'b', 9, 3),
      used('tpm', 'c', 45, 5),
      used('tpm', 'd', 90, 12),
    ]
    const told = (refusing?: number) => {
      const headers: Record<string, string> = {}
      const demanded = demand(rows.map(({ charge }) => charge))
      const refusedBy = refusing === undefined ? undefined : rows[refusing]?.charge
      const counts = rows.map(({ count }) => count)
      const setHeader = (name: string, value: string) => Object.assign(headers, { [name]: value })
      setLimitHeaders('openai', demanded, { refusedBy, waitMs: 0, counts }, { setHeader })
      return ['limit', 'remaining', 'reset'].flatMap((what) =>
        ['requests', 'tokens'].map((kind) => headers[`x-ratelimit-${what}-${kind}`]),
      )
    }
    assert.deepEqual(told(), ['9', '50', '6', '40', '3s', '10s'])
    assert.deepEqual(told(2), ['9', '45', '6', '40', '3s', '5s'])
    assert.deepEqual(told(3), ['9', '90', '6', '78', '3s', '12s'])
    assert.deepEqual(told(1), ['9', '50', '6', '40', '3s', '10s'])
    rows.push(used('rpm', 'e', 5, 7))
    assert.deepEqual(told(), ['5', '50', '0', '40', '7s', '10s'], 'what is overdrawn has nothing left')
  })

  it('write times to the second, never too early', () => {
    assert.equal(timeText(Date.parse('2026-01-31T23:59:59.001Z')), '2026-02-01T00:00:00Z')
    assert.equal(timeText(Date.parse('2026-01-31T23:59:59.000Z')), '2026-01-31T23:59:59Z')
  })
})

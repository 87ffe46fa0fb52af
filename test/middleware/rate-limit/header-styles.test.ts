import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { shop } from './shop-app.ts'

describe('headers', () => {
  const levels = [{ name: 'ip "a"', by: () => 'x', requests: 3, tokens: 100 }]
  const named = (res: Response) => [...res.headers.keys()].filter((name) => name.includes('ratelimit'))

  it('ietf: RateLimit-Policy and RateLimit on successes and refusals', async (t) => {
    const app = await shop(t, { headers: 'ietf', levels, windowMs: 7_200_000, tokens: () => 30 })
    const res = await app.ask()
    assert.deepEqual(named(res), ['ratelimit', 'ratelimit-policy'])
    assert.equal(
      res.headers.get('ratelimit-policy'),
      '"ip \\"a\\"";q=3;w=7200, "ip \\"a\\"-tokens";q=100;qu="tokens";w=7200',
    )
    assert.equal(res.headers.get('ratelimit'), '"ip \\"a\\"";r=2;t=7200, "ip \\"a\\"-tokens";r=70;t=7200')
    await app.ask()
    await app.ask()
    const refused = await app.ask()
    assert.equal(refused.status, 429)
    assert.match(refused.headers.get('ratelimit') ?? '', /^"ip \\"a\\"";r=0;t=7200, .*;r=10;t=7200$/)
    assert.equal(refused.headers.get('retry-after'), '7200')
  })

  it('ietf: names and numbers that a structured field cannot hold are written as it can', async (t) => {
    const limits = { requests: 2 ** 60, tokens: 1.5 }
    const odd = [{ name: 'büro\\\u007f', by: () => 'x', ...limits }]
    const app = await shop(t, { headers: 'ietf', levels: odd, windowMs: 1, tokens: () => 1 })
    const res = await app.ask()
    const name = '"b?ro\\\\?"'
    const tokens = '"b?ro\\\\?-tokens"'
    assert.equal(
      res.headers.get('ratelimit-policy'),
      `${name};q=999999999999999;w=1, ${tokens};q=1;qu="tokens";w=1`,
    )
    assert.equal(res.headers.get('ratelimit'), `${name};r=999999999999999;t=1, ${tokens};r=0;t=1`)
  })

  it('ietf: none where only slots are limited, or none but those', async (t) => {
    const slots = [{ name: 'all', by: () => 'x', concurrency: 3 }]
    assert.deepEqual(named(await (await shop(t, { headers: 'ietf', levels: slots })).ask()), [])
  })

  it('openai, anthropic, none: their own names, and Retry-After on a refusal in any case', async (t) => {
    for (const [headers, first] of [
      ['openai', 'x-ratelimit-limit-requests'],
      ['anthropic', 'anthropic-ratelimit-requests-limit'],
      ['none', undefined],
    ] as const) {
      const app = await shop(t, { headers, levels: [{ name: 'all', by: () => 'all', rpm: 1 }] })
      assert.equal(named(await app.ask())[0], first)
      const refused = await app.ask()
      assert.equal(refused.status, 429)
      assert.equal(named(refused)[0], first)
      assert.equal(refused.headers.get('retry-after'), '60')
    }
  })

  it('are not set on an answer whose head is sent already', async (t) => {
    const app = await shop(t, { headers: 'ietf', levels }, (app) =>
      app.use((_req, res, next) => {
        res.flushHeaders()
        next()
      }),
    )
    const res = await app.ask()
    assert.equal(res.status, 200)
    assert.deepEqual(named(res), [])
  })
})

it('a refusal has its headers also where the app’s own error handler knows only its status', async (t) => {
  const app = await shop(t, { levels: [{ name: 'all', by: () => 'all', rpm: 1, concurrency: 5 }] })
  await app.ask()
  const refused = await app.ask()
  assert.equal(refused.status, 429)
  assert.match(await refused.text(), /rate limit/i)
  assert.equal(refused.headers.get('retry-after'), '60')
  assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '0')
})

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { adminAccess } from '../../../lib/management/index.ts'
import { WrongTokens } from '../../../lib/management/operators/wrong-tokens.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

function guesses(t: TestContext) {
  let now = 100_000
  t.mock.method(performance, 'now', () => now)
  const wrong = new WrongTokens()
  const pass = (ms: number): void => {
    now += ms
  }
  return { wrong, pass }
}

describe('wrong tokens', () => {
  it('of an address are answered at once for 20 a minute, then two a second, and beyond ten waiting not at all', (t) => {
    const { wrong, pass } = guesses(t)
    for (let i = 0; i < 20; i++) assert.equal(wrong.note('10.0.0.1').waitMs, 0)
    for (let i = 1; i <= 10; i++) {
      assert.equal(wrong.pauseOf('10.0.0.1'), 0)
      assert.equal(wrong.note('10.0.0.1').waitMs, i * 500)
    }
    wrong.note('10.0.0.1')
    assert.ok(wrong.pauseOf('10.0.0.1') > 5000)
    assert.equal(wrong.pauseOf('10.0.0.2'), 0)
    pass(1000)
    assert.equal(wrong.pauseOf('10.0.0.1'), 0)
    pass(60_000)
    assert.equal(wrong.note('10.0.0.1').waitMs, 0)
    assert.equal(wrong.count, 32)
  })

  it('count by /56 in IPv6, and mapped addresses as IPv4', (t) => {
    const { wrong } = guesses(t)
    for (let i = 0; i < 25; i++) wrong.note(`2a00:1450:4001:82${(i % 16).toString(16)}::${i}`)
    assert.ok(wrong.note('2a00:1450:4001:8ff::1').waitMs > 0)
    assert.equal(wrong.note('2a00:1450:4001:900::1').waitMs, 0)
    for (let i = 0; i < 25; i++) wrong.note('::ffff:10.0.0.1')
    assert.ok(wrong.note('10.0.0.1').waitMs > 0)
  })

  it('are refused, counted and logged, and an address that goes on gets 429; another one is let in', async (t) => {
    const logger = recordingLogger()
    const access = adminAccess({ token: 'right' })
    const server = await serveApp((app) => {
      app.set('trust proxy', true)
      app.use(beginCall({ logger }), access, (_req, res) => void res.end())
      app.use(errorEnvelope())
    })
    t.after(() => server.close())
    const ask = async (token: string, from: string, withinMs = 20_000) => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': from }
      return (
        await fetch(server.url, { headers, signal: AbortSignal.timeout(withinMs) }).catch(() => undefined)
      )?.status
    }
    for (let i = 0; i < 20; i++) assert.equal(await ask('wrong', '10.0.0.1'), 401)
    assert.equal(await ask('right', '10.0.0.1'), 200)
    await Promise.all(Array.from({ length: 13 }, () => ask('wrong', '10.0.0.1', 300)))
    assert.equal(await ask('wrong', '10.0.0.1'), 429)
    assert.equal(await ask('right', '10.0.0.2'), 200)
    assert.equal(await ask('wrong', '10.0.0.2'), 401)
    assert.ok(access.wrongTokens >= 31)
    assert.equal(logger.lines.filter(({ level }) => level === 'warn').length, 2)
  })
})

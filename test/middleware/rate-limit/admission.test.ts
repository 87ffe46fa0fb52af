import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitedApp } from './limited-app.ts'

describe('rateLimit', () => {
  it('lets everything through where no limit is set', async (t) => {
    const app = await limitedApp(t)
    for (let i = 0; i < 20; i++) assert.equal((await app.ask({ tokens: 1e9 })).status, 200)
  })

  const cases = [
    { limit: 'keyRpm', kind: 'rpm', level: 'key', subject: 'k1', tokens: 0 },
    { limit: 'keyTpm', kind: 'tpm', level: 'key', subject: 'k1', tokens: 1 },
    { limit: 'rpm', kind: 'rpm', level: 'account', subject: 'a1', tokens: 0 },
    { limit: 'tpm', kind: 'tpm', level: 'account', subject: 'a1', tokens: 1 },
  ] as const
  for (const { limit, kind, level, subject, tokens } of cases) {
    it(`refuses what is above the ${kind} of the ${level}, before the handler`, async (t) => {
      const app = await limitedApp(t, { [limit]: 2 })
      for (let i = 0; i < 2; i++) assert.equal((await app.ask({ tokens })).status, 200)
      const refused = await app.ask({ tokens })
      assert.equal(refused.status, 429)
      assert.equal(refused.envelope.error.code, 'rate_limited')
      assert.equal(refused.envelope.error.type, 'rate_limit_error')
      assert.equal(refused.headers.get('x-should-retry'), 'true')
      const retryAfter = Number(refused.headers.get('retry-after'))
      assert.ok(retryAfter > 50 && retryAfter <= 60, `${retryAfter}`)
      assert.equal(app.handled, 2)
      assert.deepEqual(app.calls[2]?.limit, { kind, level, subject, limit: 2, retryAfter })
      // The limit that was matched is for the call log only.
      assert.doesNotMatch(JSON.stringify(refused.envelope.error), /k1|a1|key|account/)
    })
  }

  it('counts each key and each account for itself', async (t) => {
    const app = await limitedApp(t, { keyRpm: 1, rpm: 2 })
    assert.equal((await app.ask({ key: 'k1' })).status, 200)
    assert.equal((await app.ask({ key: 'k1' })).status, 429)
    assert.equal((await app.ask({ key: 'k2' })).status, 200)
    assert.equal((await app.ask({ key: 'k3' })).status, 429)
    assert.equal((await app.ask({ key: 'k4', account: 'a2' })).status, 200)
  })

  it('consumes nothing of the account for what the key refused', async (t) => {
    const app = await limitedApp(t, { keyRpm: 1, rpm: 3, tpm: 30 })
    for (let i = 0; i < 10; i++) await app.ask({ key: 'k1', tokens: 10 })
    for (const key of ['k2', 'k3']) assert.equal((await app.ask({ key, tokens: 10 })).status, 200)
    assert.equal((await app.ask({ key: 'k4', tokens: 10 })).status, 429)
  })

  it('consumes nothing of the key for what the account refused', async (t) => {
    const app = await limitedApp(t, { keyTpm: 100, tpm: 50 })
    assert.equal((await app.ask({ tokens: 40 })).status, 200)
    const refused = await app.ask({ tokens: 40 })
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('x-ratelimit-remaining-tokens'), '10')
    const fits = await app.ask({ tokens: 10 })
    assert.equal(fits.status, 200)
    const other = await app.ask({ account: 'a2', tokens: 50 })
    assert.equal(other.headers.get('x-ratelimit-remaining-tokens'), '0')
    assert.equal(other.status, 200)
  })

  it('refuses a request that is larger than its whole limit with a message that it can never pass', async (t) => {
    const app = await limitedApp(t, { keyTpm: 100, keyRpm: 5 })
    const refused = await app.ask({ tokens: 101 })
    assert.equal(refused.status, 429)
    assert.equal(refused.envelope.error.code, 'rate_limited')
    assert.match(refused.envelope.error.message, /can never pass/)
    assert.doesNotMatch(refused.envelope.error.message, /\d/)
    assert.equal(refused.headers.get('x-should-retry'), 'false')
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    const fits = await app.ask({ tokens: 100 })
    assert.equal(fits.status, 200)
    assert.equal(fits.headers.get('x-ratelimit-remaining-requests'), '4')
  })

  it('refuses everything where a limit is zero, and says that waiting is of no use', async (t) => {
    const app = await limitedApp(t, { concurrency: 0 })
    const refused = await app.ask()
    assert.equal(refused.status, 429)
    assert.equal(refused.envelope.error.code, 'concurrency_limited')
    assert.equal(refused.headers.get('x-should-retry'), 'false')
    assert.equal(app.handled, 0)
  })

  it('answers internal_error, not 429, where a limit of the app cannot be worked out', async (t) => {
    const levels = [{ name: 'user', by: () => 'u', rpm: () => Number.NaN }]
    const app = await limitedApp(t, { levels })
    assert.equal((await app.ask()).status, 500)
    assert.equal(app.handled, 0)
  })

  it('says at construction what is wrong with an option', async (t) => {
    const by = () => 'x'
    const faults = [
      [
        {
          levels: [
            { name: 'ip', by, rpm: 1 },
            { name: 'ip', by, rpm: 2 },
          ],
        },
        /same "name"/,
      ],
      [{ windowMs: 3_600_000 }, /per minute.* "windowMs" of 3600000 give "limit" or "levels"/],
      [
        { windowMs: 3_600_000, levels: [{ name: 'ip', by, rpm: 1 }] },
        /"levels\[0\]": "rpm" is per minute, and "windowMs" is 3600000; write "requests"/,
      ],
      [{ windowMs: 1, levels: [{ name: 'ip', by, tpm: 1 }] }, /"tpm" is per minute.*write "tokens"/],
      [{ levels: [{ name: 'ip', by, tpm: 1, tokens: 2 }] }, /"tokens" or "tpm", not both/],
      [{ levels: [{ name: 'ip', by }] }, /limits nothing; give it "requests", "tokens" or "concurrency"/],
      [{ windowMs: 0 }, /"windowMs"/],
      [{ windowMs: 2_678_400_001 }, /"windowMs"/],
      [{ windowMs: 1.5 }, /"windowMs"/],
      [{ onStoreError: 'wait' as 'local' }, /"onStoreError"/],
      [{ store: {} as never }, /"store"/],
    ] as const
    for (const windowMs of [1, 60_000, 2_147_483_647]) await limitedApp(t, { limit: 1, windowMs })
    for (const [options, message] of faults)
      await assert.rejects(limitedApp(t, options), { name: 'TypeError', message })
  })
})

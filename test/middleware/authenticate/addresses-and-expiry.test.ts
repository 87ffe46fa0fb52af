import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { hashSecret, type KeyRecord, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { type Admission, bearer, guard } from './admission.ts'

let app: Admission | undefined
afterEach(() => app?.close())

/** A guard whose only key may call from `allowIps`. */
async function allowing(allowIps: string[], trustProxy: unknown): Promise<Admission> {
  const keys = memoryKeyDirectory({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k1', account: 'acme', secret: 'sk-1', allowIps }],
  })
  app = await guard({ keys }, trustProxy)
  return app
}

describe('address allow-lists behind a trusted proxy', () => {
  const allowed = [
    '10.0.0.0/8',
    '192.0.2.7',
    '2001:db8::/32',
    '::1',
    '::ffff:198.51.100.0/120',
    '203.0.113.0/25',
    '2001:db9:1::abcd:0/112',
    'fe80::1',
  ]
  const from: [string, boolean][] = [
    ['10.0.0.0', true],
    ['10.255.255.255', true],
    ['11.0.0.0', false],
    ['9.255.255.255', false],
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['203.0.113.127', true],
    ['203.0.113.128', false],
    ['2001:db8::1', true],
    ['2001:DB8:ffff:ffff:ffff:ffff:ffff:ffff', true],
    ['2001:db9::1', false],
    ['::1', true],
    ['0:0:0:0:0:0:0:1', true],
    ['::2', false],
    ['2001:db9:1::abcd:ffff', true],
    ['2001:db9:1::abce:0', false],
    ['fe80::1', true],
    ['fe80::', false],
    // IPv4 mapped into IPv6 is the IPv4 address, on either side and in either notation.
    ['::ffff:10.1.2.3', true],
    ['::ffff:0a01:0203', true],
    ['::FFFF:10.1.2.3', true],
    ['::ffff:11.1.2.3', false],
    ['198.51.100.9', true],
    ['::ffff:198.51.100.9', true],
    ['198.51.101.9', false],
    // A text that is no address is on no list.
    ['unknown', false],
    ['10.0.0.0/8', false],
    // Some proxies name the port, or write IPv6 in brackets.
    ['10.1.2.3:443', true],
    ['11.1.2.3:443', false],
    ['[2001:db8::1]:443', true],
    ['[2001:db9::1]:443', false],
    ['10.1.2.3:', false],
  ]

  it('hold for IPv4, IPv6, mapped addresses and blocks', async () => {
    const { ask } = await allowing(allowed, 'loopback')
    for (const [address, passes] of from) {
      const { status, error } = await ask({ ...bearer('sk-1'), 'x-forwarded-for': address })
      assert.deepEqual([status, error], passes ? [200, undefined] : [403, 'ip_not_allowed'], address)
    }
    assert.equal(app?.admitted, from.filter(([, passes]) => passes).length)
  })

  it('judge the hop that the app’s trust proxy setting makes the caller', async () => {
    const { ask } = await allowing(['10.0.0.1'], 1)
    assert.equal((await ask({ ...bearer('sk-1'), 'x-forwarded-for': '192.0.2.1, 10.0.0.1' })).status, 200)
    assert.equal((await ask({ ...bearer('sk-1'), 'x-forwarded-for': '10.0.0.1, 192.0.2.1' })).status, 403)
  })

  it('are not to be talked round where no proxy is trusted', async () => {
    const { ask } = await allowing(['10.0.0.1'], false)
    const forged = { 'x-forwarded-for': '10.0.0.1', 'x-real-ip': '10.0.0.1', forwarded: 'for=10.0.0.1' }
    assert.equal((await ask({ ...bearer('sk-1'), ...forged })).error, 'ip_not_allowed')
    assert.equal(app?.admitted, 0)
  })

  it('know the caller on the socket itself', async () => {
    const { ask } = await allowing(['127.0.0.0/8'], false)
    assert.equal((await ask({ ...bearer('sk-1'), 'x-forwarded-for': '10.0.0.1' })).status, 200)
  })
})

describe('an allow-list that cannot be read', () => {
  const record: KeyRecord = {
    id: 'k1',
    account: {
      id: 'acme',
      limits: { rpm: null, tpm: null, concurrency: null },
      regions: null,
      lineRegions: null,
    },
    enabled: true,
    expiresAt: null,
    allowIps: ['10.0.0.0/33'],
    allowModels: null,
    limits: { rpm: null, tpm: null },
  }
  for (const [how, find] of [
    ['at once', () => record],
    ['later', async () => record],
  ] as const) {
    it(`admits no caller and ends nothing but the call, from a directory that answers ${how}`, async () => {
      app = await guard({ keys: { find } })
      assert.equal((await app.ask(bearer('sk-1'))).error, 'internal_error')
      assert.equal(app.admitted, 0)
      assert.match(String(app.logger.lines[0]?.fields.err), /10\.0\.0\.0\/33/)
    })
  }
})

describe('expiry', () => {
  it('begins at the very instant', async (t) => {
    const expiry = Date.parse('2030-06-01T12:00:00.000Z')
    t.mock.timers.enable({ apis: ['Date'], now: expiry - 1 })
    const keys = memoryKeyDirectory({
      accounts: [{ id: 'acme' }],
      keys: [{ id: 'k1', account: 'acme', secret: 'sk-1', expiresAt: '2030-06-01T14:00:00+02:00' }],
    })
    app = await guard({ keys })
    assert.equal((await app.ask(bearer('sk-1'))).status, 200)
    t.mock.timers.setTime(expiry)
    assert.equal((await app.ask(bearer('sk-1'))).error, 'key_expired')
    t.mock.timers.setTime(expiry + 1)
    assert.equal((await app.ask({ 'x-api-key': 'sk-1' })).error, 'key_expired')
    assert.equal(app.admitted, 1)
  })
})

describe('regions', () => {
  it('are not judged by a gateway that has none', async () => {
    const keys = memoryKeyDirectory({
      accounts: [{ id: 'acme', regions: ['eu'] }],
      keys: [{ id: 'k1', account: 'acme', secret: 'sk-1' }],
    })
    app = await guard({ keys })
    assert.equal((await app.ask(bearer('sk-1'))).status, 200)
    assert.ok(keys.find(hashSecret('sk-1')))
  })
})

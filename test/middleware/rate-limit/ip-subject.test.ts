import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ipSubject } from '../../../lib/middleware/rate-limit/index.ts'
import { shop } from './shop-app.ts'

describe('ipSubject', () => {
  const subject = (ip: string | undefined, ipv6Prefix?: number) =>
    ipSubject(ipv6Prefix === undefined ? {} : { ipv6Prefix })({ ip } as never)

  for (const [ip, prefix, expected] of [
    ['192.0.2.7', undefined, '192.0.2.7'],
    ['::ffff:192.0.2.7', undefined, '192.0.2.7'],
    ['::ffff:c000:207', undefined, '192.0.2.7'],
    ['0:0:0:0:0:ffff:192.0.2.7', undefined, '192.0.2.7'],
    ['2001:db8:1:2345:6::7', undefined, '2001:db8:1:2300::/56'],
    ['2001:DB8:0001:23ff::1', undefined, '2001:db8:1:2300::/56'],
    ['2001:db8:1:2345::7', 64, '2001:db8:1:2345::/64'],
    ['2001:db8:1:2345::7', 63, '2001:db8:1:2344::/63'],
    ['2001:db8:1:2345::7', 32, '2001:db8::/32'],
    ['2001:db8:1:2345::7', 128, '2001:db8:1:2345::7'],
    ['2001:db8::192.0.2.7', undefined, '2001:db8::/56'],
    ['fe80::1%eth0', undefined, 'fe80::/56'],
    ['203.0.113.7:51234', undefined, '203.0.113.7'],
    ['unknown', undefined, 'unknown'],
    ['_hidden-1', undefined, 'unknown'],
    [undefined, undefined, undefined],
  ] as const) {
    it(`counts ${ip} as ${expected} with ${prefix ?? 'the default prefix'}`, () => {
      assert.equal(subject(ip, prefix), expected)
    })
  }

  it('counts as one exactly the addresses that share the prefix, whatever its length', () => {
    const address = 0xfedc_ba98_7654_3210_f0e1_d2c3_b4a5_9687n
    const textOf = (bits: bigint) =>
      (bits.toString(16).padStart(32, '0').match(/.{4}/g) as string[]).join(':')
    for (let prefix = 1; prefix <= 128; prefix++) {
      const of = (bits: bigint) => subject(textOf(bits), prefix)
      const outside = 1n << BigInt(128 - prefix)
      assert.equal(of(address ^ (outside - 1n)), of(address), `the rest behind ${prefix} bits`)
      assert.notEqual(of(address ^ outside), of(address), `bit ${prefix}`)
      assert.equal(of(address)?.endsWith(`/${prefix}`), prefix < 128)
    }
  })

  it('lets one network share its window, and another have its own', async (t) => {
    const app = await shop(t, { levels: [{ name: 'ip', by: ipSubject(), rpm: 1 }] }, (app) =>
      app.set('trust proxy', true),
    )
    const from = async (ip: string) => (await app.ask({ 'x-forwarded-for': ip })).status
    assert.equal(await from('2001:db8:1:1::1'), 200)
    assert.equal(await from('2001:db8:1:2::9'), 429)
    assert.equal(await from('2001:db8:2:1::1'), 200)
    assert.equal(await from('::ffff:192.0.2.1'), 200)
    assert.equal(await from('192.0.2.1'), 429)
  })
})

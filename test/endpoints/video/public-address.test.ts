import assert from 'node:assert/strict'
import dns, { type LookupAddress } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it, type TestContext } from 'node:test'
import {
  isPrivateHost,
  isPublicAddress,
  lookupPublic,
  PrivateAddress,
} from '../../../lib/endpoints/video/content/public-address.ts'

describe('a public address', () => {
  const rows: [string, boolean][] = [
    ['93.184.216.34', true],
    ['2606:2800:220:1:248:1893:25c8:1946', true],
    ['127.0.0.1', false],
    ['10.1.2.3', false],
    ['172.16.0.1', false],
    ['192.168.1.1', false],
    ['169.254.169.254', false],
    ['100.64.0.1', false],
    ['0.0.0.0', false],
    ['224.0.0.1', false],
    ['255.255.255.255', false],
    ['::', false],
    ['::1', false],
    ['fe80::1', false],
    ['fc00::1', false],
    ['ff02::1', false],
    ['::ffff:10.0.0.1', false],
    ['64:ff9b::a00:1', false],
    ['2002:a00:1::', false],
    ['2a00:1450:4001:82a::200e', true],
    ['::ffff:93.184.216.34', true],
    ['::FFFF:5db8:d822', true],
    ['4000::1', false],
    ['5f00::1', false],
    ['fec0::1', false],
    ['not an address', false],
  ]
  for (const [address, isPublic] of rows) {
    it(`${address}: ${isPublic}`, () => assert.equal(isPublicAddress(address), isPublic))
  }

  it('is never an IPv6 address that embeds an IPv4 address, private or public, but the mapped form', () => {
    const hex = (ip: string) => {
      const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
      return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)].join(':')
    }
    const forms: ((ip: string) => string)[] = [
      (ip) => `::${ip}`,
      (ip) => `::${hex(ip)}`,
      (ip) => `0:0:0:0:0:0:${ip}`,
      (ip) => `::ffff:0:${ip}`,
      (ip) => `::ffff:0:${hex(ip)}`,
      (ip) => `64:ff9b::${ip}`,
      (ip) => `64:ff9b::${hex(ip)}`,
      (ip) => `64:ff9b:1::${hex(ip)}`,
      (ip) => `64:ff9b:1:fffe::${ip}`,
      (ip) => `2002:${hex(ip)}::`,
      (ip) => `2002:${hex(ip)}::1`,
      (ip) => `2001:0:${hex(ip)}::`,
      (ip) => `2001::${hex(ip)}`,
      (ip) => `fe80::5efe:${ip}`,
      (ip) => `2606:2800:220:1:0:5efe:${ip}`,
      (ip) => `2606:2800:220:1:200:5efe:${hex(ip)}`,
    ]
    for (const ip of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '192.168.0.1', '93.184.216.34']) {
      for (const form of forms) {
        assert.equal(isPublicAddress(form(ip)), false, form(ip))
        assert.equal(isPrivateHost(new URL(`https://[${form(ip)}]/`).hostname), true, form(ip))
      }
      assert.equal(isPublicAddress(`::ffff:${ip}`), ip.startsWith('93.'))
      assert.equal(isPublicAddress(`::ffff:${hex(ip)}`), ip.startsWith('93.'))
    }
  })

  it('is what a name has to be looked up as, for one address and for all', async () => {
    for (const all of [true, false]) {
      const error = await new Promise((resolve) => lookupPublic('localhost', { all }, resolve))
      assert.ok(error instanceof PrivateAddress)
    }
    assert.equal(isPrivateHost('localhost'), false, 'names are judged when they are looked up')
    assert.equal(isPrivateHost('[::1]'), true)
  })
})

describe('a name that is looked up', () => {
  type Answered = [error: Error | null, address: string | LookupAddress[], family?: number | undefined]

  /** What a connection is told, and the options of the look-up behind it. */
  async function lookedUp(t: TestContext, addresses: LookupAddress[] | Error, all: boolean) {
    const asked: unknown[] = []
    t.mock.method(dns, 'lookup', (hostname: string, options: object, done: (...told: unknown[]) => void) => {
      asked.push([hostname, options])
      if (addresses instanceof Error) done(addresses)
      else done(null, addresses)
    })
    syncBuiltinESMExports()
    try {
      const told = await new Promise<Answered>((resolve) =>
        lookupPublic('files.example', { all, family: 4 }, (...answer) => resolve(answer)),
      )
      assert.deepEqual(
        asked,
        [['files.example', { all: true, family: 4 }]],
        'all of them, however many are wanted',
      )
      return told
    } finally {
      t.mock.restoreAll()
      syncBuiltinESMExports()
    }
  }

  const ONE = { address: '93.184.216.34', family: 4 }
  const TWO = { address: '2606:2800:220:1:248:1893:25c8:1946', family: 6 }
  const PRIVATE = { address: '10.0.0.1', family: 4 }

  it('is its addresses, or the first of them, where all are public', async (t) => {
    assert.deepEqual(await lookedUp(t, [ONE, TWO], true), [null, [ONE, TWO]])
    assert.deepEqual(await lookedUp(t, [ONE, TWO], false), [null, ONE.address, 4])
    assert.deepEqual(await lookedUp(t, [TWO, ONE], false), [null, TWO.address, 6])
  })

  for (const [where, addresses] of [
    ['first', [PRIVATE, ONE, TWO]],
    ['in the middle', [ONE, PRIVATE, TWO]],
    ['last', [ONE, TWO, PRIVATE]],
  ] as const) {
    it(`is refused where one of them is private, though only the ${where} one`, async (t) => {
      for (const all of [true, false]) {
        const [error, address] = await lookedUp(t, [...addresses], all)
        assert.ok(error instanceof PrivateAddress)
        assert.equal(address, '')
      }
    })
  }

  it('is refused where it has none, and fails as the look-up does', async (t) => {
    for (const all of [true, false]) {
      const [error] = await lookedUp(t, [], all)
      assert.ok(error instanceof PrivateAddress)
      const fault = new Error('ENOTFOUND')
      assert.equal((await lookedUp(t, fault, all))[0], fault)
    }
  })
})

describe('the host of a URL', () => {
  it('is private where it is an address that is not public, in brackets or without', () => {
    for (const host of ['10.0.0.1', '[::1]', '::1', '[::ffff:10.0.0.1]'])
      assert.equal(isPrivateHost(host), true, host)
    for (const host of [
      '93.184.216.34',
      '[2606:2800:220:1:248:1893:25c8:1946]',
      'files.example',
      '10.0.0.1.example',
    ])
      assert.equal(isPrivateHost(host), false, host)
  })
})

import assert from 'node:assert/strict'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { describe, it } from 'node:test'
import { hostsIn, searchedNames } from '../../../lib/core/public-address/host-look-up.ts'
import {
  isPrivateHost,
  isPublicAddress,
  lookupAny,
  lookupPublic,
  PrivateAddress,
} from '../../../lib/core/public-address/public-address.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { until } from '../../support/until.ts'

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

  it('is required of a name for one address and for all', async () => {
    for (const all of [true, false]) {
      const error = await new Promise((resolve) => lookupPublic('localhost', { all }, resolve))
      assert.ok(error instanceof PrivateAddress)
    }
    assert.equal(isPrivateHost('localhost'), false, 'names are judged when they are looked up')
    assert.equal(isPrivateHost('[::1]'), true)
  })
})

describe('a name that is looked up', () => {
  type Answered = [
    error: (Error & { code?: string }) | null,
    address: string | LookupAddress[],
    family?: number,
  ]
  const lookedUp = (look: typeof lookupPublic, name: string, options: LookupOptions) =>
    new Promise<Answered>((resolve) => look(name, options, (...answer) => resolve(answer as Answered)))

  const ONE = '93.184.216.34'
  const TWO = '2606:2800:220:1:248:1893:25c8:1946'
  const PRIVATE = '10.0.0.1'
  const pair = (address: string) => ({ address, family: address.includes(':') ? 6 : 4 })

  it('resolves to its addresses, or to the first of them, if all are public', async (t) => {
    const server = await startDnsServer(t)
    server.names.set('files.example', [TWO, ONE])
    const look = (options: LookupOptions) => lookedUp(lookupPublic, 'files.example', options)
    assert.deepEqual(await look({ all: true }), [null, [pair(ONE), pair(TWO)]])
    assert.deepEqual(await look({ all: false }), [null, ONE, 4])
    assert.deepEqual(await look({ all: true, family: 6 }), [null, [pair(TWO)]])
    assert.deepEqual(await look({ family: 'IPv6' }), [null, TWO, 6])
  })

  for (const addresses of [
    [PRIVATE, ONE],
    [ONE, PRIVATE],
    [ONE, '::1'],
    ['::ffff:10.0.0.8'],
    ['127.0.0.1'],
  ]) {
    it(`is refused as ${addresses}, unless private ones are allowed`, async (t) => {
      const server = await startDnsServer(t)
      server.names.set('files.example', addresses)
      for (const options of [{ all: true }, { all: false }, { family: 4 }, { family: 6 }]) {
        const [error, address] = await lookedUp(lookupPublic, 'files.example', options)
        assert.ok(error instanceof PrivateAddress)
        assert.equal(address, '')
      }
      const [error, all] = await lookedUp(lookupAny, 'files.example', { all: true })
      assert.equal(error, null)
      assert.equal((all as LookupAddress[]).length, addresses.length)
    })
  }

  it('fails with a code if it does not exist, has no address of the family, or no server answers', async (t) => {
    const server = await startDnsServer(t)
    server.names.set('four.example', [ONE])
    server.names.set('empty.example', [])
    server.names.set('hanging.example', 'hangs')
    for (const [name, options, code] of [
      ['nobody.example', {}, 'ENOTFOUND'],
      ['empty.example', {}, 'ENODATA'],
      ['four.example', { family: 6 }, 'ENOTFOUND'],
    ] as const)
      assert.equal((await lookedUp(lookupAny, name, options))[0]?.code, code, name)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const hanging = lookedUp(lookupAny, 'hanging.example', {})
    await until(() => server.asked.includes('hanging.example 4'), 'the question')
    t.mock.timers.tick(6000)
    assert.equal((await hanging)[0]?.code, 'ETIMEOUT')
    assert.equal(
      server.asked.filter((question) => question === 'hanging.example 4').length,
      1,
      'not once more',
    )
  })

  it('is resolved by the system if no server knows it', async (t) => {
    const server = await startDnsServer(t)
    // A form of an address that only the system reads.
    const [error, addresses] = await lookedUp(lookupAny, '0x7f000001', { all: true })
    assert.deepEqual([error, addresses], [null, [pair('127.0.0.1')]])
    assert.ok(server.asked.includes('0x7f000001 4'))
    assert.equal((await lookedUp(lookupPublic, '0x7f000001', {}))[0]?.code, 'ENOTFOUND')
  })

  it('is not sent to a server if it is an address, in the hosts file, or localhost', async (t) => {
    const server = await startDnsServer(t)
    for (const name of ['localhost', 'LOCALHOST', 'hooks.localhost', 'localhost.', '127.0.0.1', '::1']) {
      const [error, addresses] = await lookedUp(lookupAny, name, { all: true })
      assert.equal(error, null, name)
      for (const { address } of addresses as LookupAddress[]) assert.match(address, /^(127\.|::1$)/, name)
      assert.ok((await lookedUp(lookupPublic, name, {}))[0] instanceof PrivateAddress, name)
    }
    assert.deepEqual(server.asked, [])
    const hosts =
      '127.0.0.1 localhost # hooks\n#10.0.0.1 hooks\n\t10.0.0.2  other  Hooks.corp\nfe80::1 hooks.corp\nnone hooks.corp'
    assert.deepEqual(hostsIn(hosts, 'hooks.corp'), [pair('10.0.0.2'), pair('fe80::1')])
    assert.deepEqual(hostsIn(hosts, 'hooks'), [])
  })

  it('is searched for in the domains of the system', () => {
    const kubernetes =
      'search default.svc.cluster.local svc.cluster.local\nnameserver 10.0.0.1\noptions ndots:5'
    assert.deepEqual(searchedNames(kubernetes, 'hooks.default'), [
      'hooks.default.default.svc.cluster.local',
      'hooks.default.svc.cluster.local',
      'hooks.default',
    ])
    assert.deepEqual(searchedNames('search corp', 'hooks'), ['hooks.corp', 'hooks'])
    assert.deepEqual(searchedNames('search .', 'hooks'), ['hooks'])
    assert.deepEqual(searchedNames('domain corp', 'hooks.example'), ['hooks.example', 'hooks.example.corp'])
    assert.deepEqual(searchedNames('', 'hooks.example'), ['hooks.example'])
    const commented = '# search a\n#options ndots:5\nsearch b c\n search corp #d ;e .f'
    assert.deepEqual(searchedNames(commented, 'hooks.example'), ['hooks.example', 'hooks.example.corp'])
    for (const other of ['# search a', 'research a', 'options x domain a'])
      assert.deepEqual(searchedNames(`search corp\n${other}`, 'hooks'), ['hooks.corp', 'hooks'], other)
    assert.deepEqual(searchedNames('options rotate ndots:0\nsearch corp', 'hooks'), ['hooks', 'hooks.corp'])
    const many = Array.from({ length: 9 }, (_, i) => `d${i}`)
    const six = many.slice(0, 6).map((domain) => `hooks.${domain}`)
    assert.deepEqual(searchedNames(`search ${many.join(' ')}`, 'hooks'), [...six, 'hooks'])
  })
})

describe('the host of a URL', () => {
  it('is private if it is an address that is not public, with or without brackets', () => {
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

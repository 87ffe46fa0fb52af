import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it, type TestContext } from 'node:test'
import { lookUpHost } from '../../../lib/core/public-address/host-look-up.ts'
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts'

/** The system has these files. */
function systemHas(t: TestContext, { hosts = '', resolver = '' }): void {
  const files: Record<string, string> = { '/etc/hosts': hosts, '/etc/resolv.conf': resolver }
  const read = t.mock.method(fs, 'readFile', async (path: string) => files[path] ?? assert.fail(path))
  syncBuiltinESMExports()
  t.after(() => {
    read.mock.restore()
    syncBuiltinESMExports()
  })
}

const IP = '93.184.216.34'
const FOUR = { address: IP, family: 4 }
const both = (...names: string[]) => names.flatMap((name) => [`${name} 4`, `${name} 6`])

describe('a name of the system', () => {
  for (const [name, hosts, expected] of [
    ['hooks', `${IP} hooks`, [FOUR]],
    ['HOOKS.', `${IP} hooks`, [FOUR]],
    ['localhost', `${IP} localhost`, [FOUR]],
    ['hooks', `${IP} hooks\n::1 hooks`, [FOUR, { address: '::1', family: 6 }]],
    [
      'hooks.localhost',
      '',
      [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
    ],
  ] as const)
    it(`is not sent to a server: ${name} of ${JSON.stringify(hosts)}`, async (t) => {
      systemHas(t, { hosts, resolver: 'search corp' })
      const server = await startDnsServer(t)
      assert.deepEqual(await lookUpHost(name), expected)
      assert.deepEqual(server.asked, [])
    })
})

describe('a name that is searched for in domains', () => {
  const asked = ({ asked }: DnsServer) => [...new Set(asked)].sort()

  const FOUND: [what: string, name: string, names: DnsServer['names'], asked: string[]][] = [
    ['the first domain has it', 'hooks', new Map([['hooks.corp', [IP]]]), both('hooks.corp')],
    [
      'the first one does not have it',
      'hooks',
      new Map([['hooks.lan', [IP]]]),
      both('hooks.corp', 'hooks.lan'),
    ],
    [
      'the first one has no address of it',
      'hooks',
      new Map([
        ['hooks.corp', []],
        ['hooks.lan', [IP]],
      ]),
      both('hooks.corp', 'hooks.lan'),
    ],
    ['none has it', 'hooks', new Map([['hooks', [IP]]]), both('hooks', 'hooks.corp', 'hooks.lan')],
    ['it has a dot at its end', 'hooks.', new Map([['hooks', [IP]]]), both('hooks')],
    ['it only begins as localhost', 'localhost.x', new Map([['localhost.x', [IP]]]), both('localhost.x')],
    [
      'it only ends as localhost',
      'a-localhost',
      new Map([['a-localhost.corp', [IP]]]),
      both('a-localhost.corp'),
    ],
    ['it has a dot, and exists', 'a.hooks', new Map([['a.hooks', [IP]]]), both('a.hooks')],
    [
      'it has a dot, and does not exist',
      'a.hooks',
      new Map([['a.hooks.corp', [IP]]]),
      both('a.hooks', 'a.hooks.corp'),
    ],
    [
      'one of its families cannot be looked up',
      'hooks',
      new Map<string, readonly string[] | 'fails'>([
        ['hooks.corp 6', 'fails'],
        ['hooks.corp', [IP]],
      ]),
      both('hooks.corp'),
    ],
  ]
  for (const [what, name, names, expected] of FOUND)
    it(`is resolved without further queries: ${what}`, async (t) => {
      systemHas(t, { resolver: 'search corp lan' })
      const server = await startDnsServer(t)
      for (const [known, addresses] of names) server.names.set(known, addresses)
      assert.deepEqual(await lookUpHost(name), [FOUR])
      assert.deepEqual(asked(server), expected.sort())
    })

  for (const failing of [['hooks.corp'], ['hooks.corp 4'], ['hooks.corp 6']])
    it(`is not taken from a later domain if an earlier one cannot be looked up: ${failing}`, async (t) => {
      systemHas(t, { resolver: 'search corp lan' })
      const server = await startDnsServer(t)
      for (const each of failing) server.names.set(each, 'fails')
      server.names.set('hooks.lan', [IP])
      await assert.rejects(lookUpHost('hooks'), { code: 'ESERVFAIL' })
      assert.deepEqual(asked(server), both('hooks.corp'))
    })

  it('is returned without its IPv6 addresses if they are never answered', async (t) => {
    systemHas(t, { resolver: 'search corp' })
    const server = await startDnsServer(t)
    server.names.set('hooks.corp', [IP]).set('hooks.corp 6', 'hangs')
    assert.deepEqual(await lookUpHost('hooks'), [FOUR])
    assert.deepEqual(server.asked.toSorted(), both('hooks.corp'), 'it is not asked for them again')
  })

  it('leaves no timer behind that keeps the process alive', async (t) => {
    systemHas(t, { resolver: 'search corp' })
    const server = await startDnsServer(t)
    server.names.set('hooks.corp', [IP])
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    await lookUpHost('hooks')
    await assert.rejects(lookUpHost('nobody'))
    assert.equal(timers(), before)
  })

  it('does not exist if no domain has it', async (t) => {
    systemHas(t, { resolver: 'search corp lan' })
    const server = await startDnsServer(t)
    server.names.set('hooks.lan', [])
    await assert.rejects(lookUpHost('hooks'), { code: 'ENOTFOUND' })
    assert.deepEqual(asked(server), both('hooks', 'hooks.corp', 'hooks.lan').sort())
  })
})

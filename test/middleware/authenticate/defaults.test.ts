import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { Request, Response } from 'express'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import {
  type AuthenticateOptions,
  authenticate,
  hashSecret,
  type KeyRecord,
  memoryKeyDirectory,
} from '../../../lib/middleware/authenticate/index.ts'
import { compileIpAllowList } from '../../../lib/middleware/authenticate/ip-allow-list.ts'

const RECORD = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [{ id: 'k', account: 'acme', secret: 'sk' }],
}).find(hashSecret('sk')) as KeyRecord

/** Asks for a key, and returns the result: `admitted`, an error code, or nothing yet. */
function asker(options: AuthenticateOptions) {
  const middleware = authenticate(options)
  return (secret = 'sk') => {
    const req = new IncomingMessage(new Socket())
    req.headers = { authorization: `Bearer ${secret}` }
    const res = new ServerResponse(req)
    Object.assign(req, { res, url: '/v1/chat/completions' })
    const told: unknown[] = []
    middleware(req as Request, res as Response, (error?: unknown) => void told.push(error))
    return () =>
      told.length === 0 ? undefined : told[0] instanceof GatewayError ? told[0].code : (told[0] ?? 'admitted')
  }
}

/** The clocks, which stand still but for what a test lets pass. */
function clocks(t: TestContext) {
  let now = 1000
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => now)
  return async (ms: number) => {
    now += ms
    t.mock.timers.tick(ms)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

const logged = { info() {}, warn() {}, error() {} }

describe('keys, where the app says nothing of how they are remembered,', () => {
  it('are asked for anew after four seconds', async (t) => {
    const pass = clocks(t)
    let asked = 0
    const ask = asker({
      keys: {
        find: () => {
          asked++
          return RECORD
        },
      },
    })
    assert.equal(ask()(), 'admitted')
    await pass(3999)
    assert.equal(ask()(), 'admitted')
    assert.equal(asked, 1)
    await pass(1)
    assert.equal(ask()(), 'admitted')
    assert.equal(asked, 2)
  })

  it('hold for ten minutes while the directory is away', async (t) => {
    const pass = clocks(t)
    let away = false
    const find = () => {
      if (away) throw new GatewayError('internal_error', { foreseen: true })
      return RECORD
    }
    const ask = asker({ keys: { find } })
    ask()
    away = true
    await pass(599_999)
    assert.equal(ask()(), 'admitted')
    await pass(1)
    assert.equal(ask()(), 'internal_error')
  })

  it('are waited for two seconds, and half a second where one can stand in', async (t) => {
    const pass = clocks(t)
    let silent = true
    const find = () => (silent ? new Promise<undefined>(() => {}) : RECORD)
    t.mock.method(console, 'error', logged.error)
    const ask = asker({ keys: { find } })
    const first = ask()
    await pass(1999)
    assert.equal(first(), undefined)
    await pass(1)
    assert.equal(first(), 'internal_error')
    silent = false
    assert.equal(ask()(), 'admitted')
    silent = true
    await pass(4000)
    const second = ask()
    await pass(499)
    assert.equal(second(), undefined)
    await pass(1)
    assert.equal(second(), 'admitted')
  })

  it('are ten thousand, of which the oldest are forgotten first', () => {
    const asked: string[] = []
    const ask = asker({
      keys: {
        find: (hash) => {
          asked.push(hash)
          return RECORD
        },
      },
    })
    for (let i = 0; i < 10_000; i++) ask(`sk-${i}`)
    ask('sk-0')
    assert.equal(asked.length, 10_000)
    ask('sk-10000')
    ask('sk-1')
    assert.equal(asked.length, 10_001)
    ask('sk-0')
    assert.equal(asked.length, 10_002)
  })
})

describe('an entry of an allow-list without a number of bits', () => {
  it('is that address alone', () => {
    const allows = compileIpAllowList(['192.0.2.7', '2001:db8::7', '::ffff:10.0.0.3'])
    for (const ip of ['192.0.2.7', '2001:db8::7', '10.0.0.3', '::ffff:192.0.2.7'])
      assert.equal(allows(ip), true, ip)
    for (const ip of [
      '192.0.2.6',
      '192.0.2.5',
      '2001:db8::6',
      '2001:db8::5',
      '10.0.0.2',
      '::c000:207',
      null,
      '',
    ])
      assert.equal(allows(ip), false, String(ip))
  })

  it('is a block of mapped addresses from 96 bits on', () => {
    const allows = compileIpAllowList(['::ffff:10.0.0.0/97', '::ffff:0:0/96'])
    assert.equal(allows('200.1.2.3'), true)
    const half = compileIpAllowList(['::ffff:0:0/97'])
    assert.deepEqual([half('127.255.255.255'), half('128.0.0.0')], [true, false])
    const wide = compileIpAllowList(['::ffff:0:0/95'])
    assert.deepEqual([wide('10.0.0.1'), wide('::fffe:1')], [false, false])
  })
})

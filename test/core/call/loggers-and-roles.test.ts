import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import {
  consoleLogger,
  hasRole,
  type Logger,
  noteOperator,
  operatorOf,
  quietLogger,
  ROLES,
  type Role,
} from '../../../lib/core/call/index.ts'

describe('the console as a logger', () => {
  it('receives warnings and errors, and nothing else', (t) => {
    const told: unknown[] = []
    for (const level of ['log', 'info', 'warn', 'error'] as const)
      t.mock.method(console, level, (...line: unknown[]) => void told.push([level, ...line]))
    for (const level of ['info', 'warn', 'error'] as const) consoleLogger[level]({ a: 1 }, level)
    assert.deepEqual(told, [
      ['warn', 'warn', { a: 1 }],
      ['error', 'error', { a: 1 }],
    ])
  })
})

describe('a logger that never fails', () => {
  it('is the console by default, and is not wrapped twice', () => {
    assert.equal(quietLogger(), consoleLogger)
    assert.equal(quietLogger(consoleLogger), consoleLogger)
    const given: Logger = { info() {}, warn() {}, error() {} }
    const quiet = quietLogger(given)
    assert.notEqual(quiet, given)
    assert.equal(quietLogger(given), quiet)
    assert.equal(quietLogger(quiet), quiet)
  })

  it('calls the methods of the given logger on that logger', () => {
    class Own implements Logger {
      readonly #lines: unknown[] = []
      level = 'debug'
      get lines() {
        return this.#lines
      }
      info(...line: unknown[]) {
        this.#lines.push(['info', ...line])
      }
      warn(...line: unknown[]) {
        this.#lines.push(['warn', ...line])
      }
      error(...line: unknown[]) {
        this.#lines.push(['error', ...line])
      }
    }
    const quiet = quietLogger(new Own()) as Own
    for (const level of ['info', 'warn', 'error'] as const) quiet[level]({ a: 1 }, level)
    assert.deepEqual(
      quiet.lines,
      ['info', 'warn', 'error'].map((level) => [level, { a: 1 }, level]),
    )
    assert.equal(quiet.level, 'debug')
  })

  it('ignores a log call that throws or rejects', async () => {
    const asked: string[] = []
    const failing = {
      info: () => {
        asked.push('info')
        throw new Error('full')
      },
      warn: () => {
        asked.push('warn')
        return Promise.reject(new Error('away'))
      },
      error: () => {
        asked.push('error')
        return null
      },
      child: () => {
        throw new Error('not a line')
      },
    }
    const quiet = quietLogger(failing as Logger) as typeof failing
    for (const level of ['info', 'warn', 'error'] as const)
      assert.equal((quiet as Logger)[level]({}, ''), undefined)
    await new Promise(setImmediate)
    assert.deepEqual(asked, ['info', 'warn', 'error'])
    assert.throws(() => quiet.child(), /not a line/)
  })

  it('leaves levels that are not functions as they are', () => {
    const given = { info: 7, warn() {}, error() {} } as unknown as Logger
    assert.equal(quietLogger(given).info as unknown, 7)
  })
})

describe('the roles of an operator', () => {
  const MAY: Record<Role, readonly Role[]> = {
    viewer: ['viewer'],
    support: ['viewer', 'support'],
    finance: ['viewer', 'finance'],
    admin: ['viewer', 'support', 'finance', 'admin'],
  }
  const ALL = Object.keys(MAY) as Role[]
  const by = (roles: readonly Role[]) => {
    const req = {} as IncomingMessage
    noteOperator(req, { name: 'ann', roles })
    return req
  }

  for (const role of ALL)
    it(`include what ${role} may do`, () => {
      assert.deepEqual(
        ALL.filter((needed) => hasRole(by([role]), needed)),
        MAY[role],
      )
    })

  it('are the roles that an operator can be given', () => {
    assert.deepEqual([...ROLES].sort(), ALL.sort())
  })

  it('add up, and are empty without a role', () => {
    assert.equal(hasRole(by(['support', 'finance']), 'finance'), true)
    assert.deepEqual(
      ALL.filter((needed) => hasRole(by([]), needed)),
      [],
    )
  })

  it('are all granted behind the app’s own authentication', () => {
    const req = {} as IncomingMessage
    assert.equal(operatorOf(req), undefined)
    assert.deepEqual(
      ALL.filter((needed) => hasRole(req, needed)),
      ALL,
    )
    assert.deepEqual(operatorOf(by(['viewer'])), { name: 'ann', roles: ['viewer'] })
  })
})

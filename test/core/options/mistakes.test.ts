import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import * as responses from '../../../lib/endpoints/responses/index.ts'
import * as root from '../../../lib/index.ts'
import * as management from '../../../lib/management/index.ts'
import * as beginning from '../../../lib/middleware/begin-call/index.ts'
import * as forwarding from '../../../lib/middleware/forward/index.ts'
import * as guarding from '../../../lib/middleware/guard/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { FACTORIES, NOT_MOUNTED } from './factories.ts'
import {
  assertLine,
  assertMeantIsNamed,
  assertNamedAreTaken,
  assertTimersAreBounded,
  assertWrongIsRefused,
  faultOf,
} from './mistakes.ts'

const toolkit = { ...root, ...beginning, ...forwarding, ...guarding, ...responses, ...management }

type Factory = (options?: unknown) => unknown

function made(name: string, options: unknown): Error | undefined {
  return faultOf(() => make(name, options))
}

function make(name: string, options: unknown): unknown {
  return (toolkit as unknown as Record<string, Factory>)[name]?.(options)
}

it('the table has every exported function that makes a middleware or a router', () => {
  const functions = Object.entries(toolkit)
    .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name) && !NOT_MOUNTED.has(name))
    .map(([name]) => name)
  assert.deepEqual(functions.sort(), Object.keys(FACTORIES).sort())
})

for (const [name, { needs, takes, beside = {} }] of Object.entries(FACTORIES)) {
  describe(name, () => {
    it('accepts its required options, and each optional one', () => {
      assert.equal(made(name, needs), undefined)
      for (const [option, value] of Object.entries(takes))
        assert.equal(made(name, { ...needs, ...beside[option], [option]: value }), undefined, option)
    })

    it('lists its options for an unknown one, and suggests the intended one', () => {
      const error = made(name, { ...needs, unheardOf: 1 })
      assertLine(error, `${name}: `, 'an unknown option')
      const listed = /its options are (.*)$/.exec(error?.message ?? '')?.[1]?.split(', ') ?? []
      assert.deepEqual(listed.sort(), Object.keys(takes).sort())
      assertMeantIsNamed(name, listed, (misspelt) => make(name, { ...needs, ...misspelt }))
    })

    it('refuses a time that no timer can wait', () =>
      assertTimersAreBounded(Object.keys(takes), (given) => make(name, { ...needs, ...given })))

    it('reports an option of a wrong type', () => {
      for (const option of Object.keys(takes))
        assertWrongIsRefused(
          option,
          (value) => make(name, { ...needs, ...beside[option], [option]: value }),
          (error, what) => {
            assertLine(error, `${name}: `, what)
            assert.match(error.message, new RegExp(`"${option}|the rule`), what)
          },
        )
    })

    it('takes each of the values that an option names', () => {
      for (const option of Object.keys(takes))
        assertNamedAreTaken(option, (value) => make(name, { ...needs, ...beside[option], [option]: value }))
    })

    it('refuses an array for an object with methods', () => {
      for (const [option, value] of Object.entries(takes)) {
        if (Array.isArray(value) || typeof value !== 'object') continue
        for (const list of [[], [value]])
          assertLine(made(name, { ...needs, [option]: list }), `${name}: "${option}`, option)
      }
    })

    it('requires an object with its required options', () => {
      for (const value of [null, 'x', '', 7, [], true]) {
        assertLine(made(name, value), `${name}: `, String(value))
      }
      const missing = made(name, undefined)
      if (Object.keys(needs).length > 0) assertLine(missing, `${name}: `, 'no options')
      else assert.equal(missing, undefined)
    })

    it('reports that it was mounted without being called, in the log and with a 500, and rejects every request', async (t) => {
      const logger = recordingLogger()
      let behind = 0
      const app = await serveApp((app) => {
        app.use((toolkit as unknown as Record<string, RequestHandler>)[name] as RequestHandler)
        app.use((_req, res) => {
          behind++
          res.end()
        })
        app.use(toolkit.errorEnvelope({ logger }))
      })
      t.after(app.close)
      const res = await fetch(app.url, { signal: AbortSignal.timeout(5000) })
      assert.equal(res.status, 500)
      const { error } = envelopeIn(await res.json())
      assert.equal(error.code, 'internal_error')
      assert.doesNotMatch(error.message, new RegExp(name))
      assert.equal(behind, 0)
      const logged = logger.lines.map(({ fields }) => (fields as { err: Error }).err.message)
      assert.equal(logged.length, 1)
      assert.match(String(logged), new RegExp(`^${name}: .*call it: app\\.use\\(${name}\\(\\)\\)`))
    })
  })
}

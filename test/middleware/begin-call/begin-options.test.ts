import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import express from 'express'
import request from 'supertest'
import { callOf } from '../../../lib/core/call/index.ts'
import { PROTOCOLS } from '../../../lib/core/protocols/index.ts'
import { type BeginCallOptions, beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const TOO_LATE = /^beginCall: a middleware mounted before it has begun the call already/

/** An app whose call may have begun before `beginCall`, and the arguments of `console.warn`. */
function served(options: BeginCallOptions | undefined, begunBefore: (path: string) => boolean) {
  const app = express()
  app.use((req, _res, next) => {
    if (begunBefore(req.path)) callOf(req)
    next()
  })
  app.use(options ? beginCall(options) : beginCall())
  app.use((req, res) => void res.json({ id: callOf(req).id, protocol: callOf(req).protocol.name }))
  app.use(errorEnvelope())
  return app
}

describe('a call that has begun before beginCall', () => {
  for (const [name, given] of [
    ['a logger', {}],
    ['a protocol', { protocol: () => PROTOCOLS.openai }],
    ['a listener', { onBegin: () => {} }],
  ] as const)
    it(`is logged once, where there is ${name} that it does not have`, async () => {
      const logger = recordingLogger()
      const app = served({ logger, ...given }, (path) => path === '/late')
      await request(app).get('/well').expect(200)
      assert.equal(logger.lines.length, 0)
      const { body } = await request(app).get('/late').expect(200)
      await request(app).get('/late').expect(200)
      assert.equal(logger.lines.length, 1)
      const [line] = logger.lines
      assert.deepEqual([line?.level, line?.fields], ['warn', { requestId: body.id }])
      assert.match(line?.message ?? '', TOO_LATE)
    })

  it('is logged to the console by default, and only where beginCall has options', async (t) => {
    const told: string[] = []
    for (const method of ['warn', 'error', 'log', 'info'] as const)
      t.mock.method(console, method, (...given: unknown[]) => void told.push(given.join(' ')))
    await request(served(undefined, () => true))
      .get('/')
      .expect(200)
    await request(served({}, () => true))
      .get('/')
      .expect(200)
    assert.deepEqual(told, [])
    await request(served({ onBegin() {} }, () => true))
      .get('/')
      .expect(200)
    assert.equal(told.length, 1)
    assert.match(told.join(), /mount beginCall first/)
  })
})

describe('a listener of begun calls', () => {
  const answered = async (onBegin: () => unknown) => {
    const logger = recordingLogger()
    const app = served({ logger, onBegin: onBegin as () => void }, () => false)
    const answer = await request(app).get('/')
    await turn()
    return { answer, logger }
  }

  for (const thrown of [undefined, null, 'route', 'router', 0])
    it(`that throws ${JSON.stringify(thrown)} refuses the call, and is named in the log`, async () => {
      const { answer, logger } = await answered(() => {
        throw thrown
      })
      assert.equal(answer.status, 500)
      assert.equal(answer.body.error.code, 'internal_error')
      const text = logger.lines.map(({ fields }) => String((fields.err as Error).message)).join()
      assert.match(text, /^beginCall: "onBegin" threw .* in place of an error$/)
    })

  it('that rejects refuses nothing, and its failure is logged with the call', async () => {
    const failure = new Error('too late')
    const { answer, logger } = await answered(() => Promise.reject(failure))
    assert.equal(answer.status, 200)
    assert.deepEqual(logger.lines, [
      {
        level: 'error',
        fields: { err: failure, requestId: answer.body.id },
        message: '"onBegin" failed when the call had begun',
      },
    ])
  })

  it('may return anything else', async () => {
    for (const value of [null, 0, 'text', Promise.resolve(1)]) {
      const { answer, logger } = await answered(() => value)
      assert.deepEqual([answer.status, logger.lines], [200, []])
    }
  })
})

describe('the options of beginCall', () => {
  for (const [name, value] of [
    ['protocol', PROTOCOLS.openai],
    ['protocol', 'openai'],
    ['logger', {}],
    ['onBegin', []],
  ] as const)
    it(`refuse a "${name}" that is none when it is made: ${typeof value}`, () => {
      assert.throws(() => beginCall({ [name]: value } as never), {
        name: 'TypeError',
        message: new RegExp(`^beginCall: "${name}"`),
      })
    })

  it('take a function of the path for a protocol; what returns none is named in the error', async () => {
    for (const none of [undefined, null, 'openai', {}, { errorBody: 'x' }]) {
      const app = express().use(beginCall({ logger: recordingLogger(), protocol: () => none as never }))
      const errors: Error[] = []
      app.use((error: Error, _req: unknown, res: express.Response, _next: unknown) => {
        errors.push(error)
        res.status(500).end()
      })
      await request(app).get('/').expect(500)
      assert.match(
        errors[0]?.message ?? '',
        /^beginCall: "protocol" must return a protocol, such as protocolByPath/,
      )
    }
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express, { type RequestHandler } from 'express'
import { callOf, errorEnvelope, readRequest } from '../../../lib/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { catalog } from '../../support/one-line-catalog.ts'

const [model] = catalog.models.keys()
const SMALL = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] })
const LARGE = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi '.repeat(30_000) }] })

const read = (): RequestHandler => readRequest({ catalog })

/** Reads the whole body, and keeps it where no parser looks for it. */
const rawBody: RequestHandler = (req, _res, next) => {
  let text = ''
  req.on('data', (chunk) => {
    text += chunk
  })
  req.on('end', () => {
    Object.assign(req, { rawBody: text })
    next()
  })
}

const decoding: RequestHandler = (req, _res, next) => {
  req.setEncoding('utf8')
  next()
}

/** Chains whose order is the operator's mistake, and what the log says. */
const WRONG: readonly [what: string, chain: () => RequestHandler[], told: RegExp][] = [
  [
    'one that drops the body',
    () => [(req, _res, next) => void req.resume().on('end', next), read()],
    /^readRequest: .*mount readRequest before/,
  ],
  ['one that keeps the body to itself', () => [rawBody, read()], /^readRequest: .*mount readRequest before/],
  ['one that decodes the body', () => [decoding, read()], /^readRequest: .*setEncoding\(\)/],
  ['another readRequest', () => [read(), read()], /^readRequest: .*, and once/],
  [
    'readRequest before express.json',
    () => [read(), express.json({ limit: '1mb' })],
    /^a middleware before the body parser/,
  ],
]

describe('a body that another middleware has read before', () => {
  for (const [what, chain, told] of WRONG)
    for (const [size, body] of Object.entries({ small: SMALL, large: LARGE }))
      it(`${what}, ${size}: the answer is a 500, the log says what to mount, and no handler runs`, async (t) => {
        const logger = recordingLogger()
        let runs = 0
        const app = await serveApp((app) => {
          app.use(...chain())
          app.post('/v1/chat/completions', (_req, res) => {
            runs++
            res.json({})
          })
          app.use(errorEnvelope({ logger }))
        })
        t.after(app.close)
        for (const sent of [1, 2]) {
          const res = await fetch(`${app.url}/v1/chat/completions`, {
            ...{ method: 'POST', body, signal: AbortSignal.timeout(5000) },
            headers: { 'content-type': 'application/json' },
          })
          if (what === 'readRequest before express.json' && res.status === 200) continue
          assert.deepEqual(
            [res.status, envelopeIn(await res.json()).error.code],
            [500, 'internal_error'],
            `${sent}`,
          )
          const fields = logger.lines.at(-1)?.fields ?? {}
          const { err } = fields as { err: Error }
          assert.match(err.message, told)
          assert.equal(runs, 0)
        }
      })

  it('is used where it is in req.body, or where it was put back', async (t) => {
    const peek: RequestHandler = (req, _res, next) =>
      void req.once('readable', () => {
        const bytes = req.read()
        if (bytes) req.unshift(bytes)
        next()
      })
    for (const before of [
      express.json(),
      express.text({ type: '*/*' }),
      express.raw({ type: '*/*' }),
      peek,
    ]) {
      const app = await serveApp((app) => {
        app.use(before, read())
        app.post('/v1/chat/completions', (req, res) => void res.json(callOf(req).request?.body.json))
        app.use(errorEnvelope())
      })
      t.after(app.close)
      const headers = { 'content-type': 'application/json' }
      const res = await fetch(`${app.url}/v1/chat/completions`, { method: 'POST', headers, body: SMALL })
      assert.deepEqual([res.status, await res.json()], [200, JSON.parse(SMALL)])
    }
  })
})

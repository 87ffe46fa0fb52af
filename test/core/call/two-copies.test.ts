import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import express from 'express'
import * as own from '../../../lib/index.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

/** An app that a bundler, or two versions of a dependency, gave the package twice. */
describe('two copies of the package in one process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'second-copy-'))
  const cleanUp = cleaningUp()
  let other: typeof own

  before(async () => {
    cpSync('lib', join(folder, 'lib'), { recursive: true })
    cpSync('package.json', join(folder, 'package.json'))
    symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
    other = await import(pathToFileURL(join(folder, 'lib/index.ts')).href)
  })
  after(() => rmSync(folder, { recursive: true }))

  it('share the call of a request, and its id', async () => {
    assert.notEqual(own.callOf, other.callOf)
    const app = await serveApp((app) => {
      app.use(own.beginCall())
      app.get('/', other.rateLimit({ levels: [{ name: 'all', by: () => 'all', rpm: 9 }] }), (req, res) => {
        assert.equal(own.callOf(req), other.callOf(req))
        res.json({ id: other.callOf(req).id })
      })
    })
    cleanUp.after(app.close)
    const res = await fetch(app.url)
    assert.equal(res.headers.get('x-request-id'), (await jsonOf<{ id: string }>(res)).id)
  })

  it('know each other’s errors: code, status and headers of a refusal are kept, and nothing is logged', async () => {
    const logger = recordingLogger()
    const app = await serveApp((app) => {
      app.use(other.rateLimit({ levels: [{ name: 'all', by: () => 'all', rpm: 1 }] }))
      app.get('/', (_req, res) => void res.end())
      app.use(own.errorEnvelope({ logger }))
    })
    cleanUp.after(app.close)
    assert.equal((await fetch(app.url)).status, 200)
    const refused = await fetch(app.url)
    assert.equal(refused.status, 429)
    assert.equal((await jsonOf<{ error: { code: string } }>(refused)).error.code, 'rate_limited')
    assert.equal(refused.headers.get('x-should-retry'), 'true')
    assert.ok(Number(refused.headers.get('retry-after-ms')) > 1000)
    assert.deepEqual(logger.lines, [])
    assert.ok(new other.GatewayError('conflict') instanceof own.GatewayError)
    assert.ok(!(Object.assign(new Error('x'), { code: 'conflict', status: 409 }) instanceof own.GatewayError))
  })

  it('agree that an answer is held back: an error behind it does not change it', async () => {
    const app = await serveApp((app) => {
      app.post('/', express.json(), own.idempotency(), (_req, res, next) => {
        res.status(201).json({ placed: true })
        next(new Error('behind the answer'))
      })
      app.use(other.errorEnvelope({ logger: recordingLogger() }))
    })
    cleanUp.after(app.close)
    const res = await fetch(app.url, { method: 'POST', headers: { 'idempotency-key': 'a' } })
    assert.equal(res.status, 201)
    assert.deepEqual(await res.json(), { placed: true })
  })
})

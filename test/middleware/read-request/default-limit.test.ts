import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import type { Request, Response } from 'express'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { configWith } from '../../core/config/config.ts'

const { catalog } = loadConfig(configWith())

/** What a request of so many bytes is refused with, before any of them has come; undefined: it is waited for. */
function refused(bytes: number, options: { bodyLimitBytes?: number } = {}): unknown {
  const req = new IncomingMessage(new Socket())
  req.method = 'POST'
  req.url = '/v1/chat/completions'
  req.headers = { 'content-type': 'application/json', 'content-length': String(bytes) }
  const res = new ServerResponse(req)
  Object.assign(req, { res })
  const told: unknown[] = []
  const middleware = readRequest({ catalog, operation: chatCompletions, ...options })
  middleware(req as Request, res as Response, (error?: unknown) => void told.push(error))
  assert.ok(told.length <= 1)
  const [error] = told
  return error instanceof GatewayError ? error.code : error
}

describe('the longest body', () => {
  it('has 20 MiB, unless the app says otherwise', () => {
    assert.equal(refused(20 * 1024 * 1024), undefined)
    assert.equal(refused(20 * 1024 * 1024 + 1), 'request_too_large')
    assert.equal(refused(7, { bodyLimitBytes: 7 }), undefined)
    assert.equal(refused(8, { bodyLimitBytes: 7 }), 'request_too_large')
  })

  it('has some bytes at least', () => {
    for (const bodyLimitBytes of [0, -1, Number.NaN])
      assert.throws(
        () => readRequest({ catalog, bodyLimitBytes }),
        /"bodyLimitBytes" must be a positive number/,
      )
    assert.doesNotThrow(() => readRequest({ catalog, bodyLimitBytes: 1 }))
    assert.throws(() => readRequest({} as never), /"catalog" must be a catalogue/)
  })
})

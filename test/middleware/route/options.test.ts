import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import type { Request, Response } from 'express'
import { openCall } from '../../../lib/core/call/index.ts'
import { route } from '../../../lib/middleware/route/index.ts'
import { configWith } from '../../core/config/config.ts'
import { loadConfig } from '../../support/any-config.ts'
import { recordingLogger } from '../../support/app-server.ts'

const { catalog } = loadConfig(configWith())

describe('route', () => {
  for (const [options, told] of [
    [{ drainMs: 0 }, /"drainMs" must be a positive number/],
    [{ drainMs: -1 }, /"drainMs" must be a positive number/],
    [{ drainMs: Number.NaN }, /"drainMs" must be a positive number/],
    [{ onDisconnect: 'wait' }, /"onDisconnect" must be "abort" or "drain"/],
    [{ maxAttempts: 0 }, /"maxAttempts"/],
    [{ catalog: undefined }, /"catalog"/],
  ] as const)
    it(`is not made with ${Object.keys(options)} ${String(Object.values(options))}`, () =>
      assert.throws(() => route({ catalog, ...options } as never), { name: 'TypeError', message: told }))

  it('is made with the least that is allowed', () => {
    for (const options of [
      {},
      { drainMs: 1 },
      { onDisconnect: 'drain' as const },
      { onDisconnect: 'abort' as const },
    ])
      assert.doesNotThrow(() => route({ catalog, ...options }))
  })

  it('says at once what it needs in front of it', () => {
    const req = new IncomingMessage(new Socket()) as Request
    const res = new ServerResponse(req) as Response
    openCall(req, res, { logger: recordingLogger() })
    const passed: unknown[] = []
    route({ catalog })(req, res, (error?: unknown) => passed.push(error))
    assert.deepEqual(passed.map(String), [
      'TypeError: route: there is no call.request; mount readRequest before route',
    ])
  })
})

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { before, beforeEach, describe, it } from 'node:test'
import { Router } from 'express'
import { type Call, callOf, isRequestId } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { PROTOCOLS } from '../../../lib/core/protocols/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { type AppServer, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

let app: AppServer
let calls: Call[] = []
let handled = 0

const cleanUp = cleaningUp()
before(async () => {
  app = await serveApp((app) => {
    app.use(
      beginCall({
        onBegin: (call, req) => {
          calls.push(call)
          if (req.headers['x-refuse']) throw new GatewayError('region_denied')
        },
      }),
    )
    // Mounted a second time, as by a router of its own: the call that is there stays.
    const router = Router()
    router.use(beginCall({ protocol: () => PROTOCOLS.anthropic, onBegin: () => {} }))
    router.all('/{*any}', (req, res) => {
      handled++
      res.json({ id: callOf(req).id, path: callOf(req).path })
    })
    app.use('/llm', router)
    app.use(unknownPath(), errorEnvelope())
  })
  cleanUp.after(() => app.close())
})
beforeEach(() => {
  calls = []
  handled = 0
})

describe('beginCall', () => {
  it('puts the request id on successes and errors alike, a new one each time', async () => {
    const ids = new Set<string | null>()
    for (const path of ['/llm/a', '/llm/a', '/unknown', '/unknown']) {
      const id = (await fetch(app.url + path)).headers.get('x-request-id')
      assert.ok(isRequestId(id ?? ''))
      ids.add(id)
    }
    assert.equal(ids.size, 4)
    assert.deepEqual(
      [...ids],
      calls.map(({ id }) => id),
    )
    assert.deepEqual([...ids].sort().length, 4)
  })

  it('adds request-id on the Anthropic-style protocol only', async () => {
    for (const [path, same] of [
      ['/llm/v1/messages', true],
      ['/llm/v1/chat/completions', false],
      ['/llm/api/v3/contents/generations/tasks', false],
    ] as const) {
      const { headers } = await fetch(app.url + path)
      assert.equal(headers.get('request-id'), same ? headers.get('x-request-id') : null, path)
    }
  })

  it('keeps a caller’s own X-Request-Id, and does not use it', async () => {
    for (const own of ['mine-1', 'req_00000000000000000000000000']) {
      const res = await fetch(`${app.url}/llm/a`, { headers: { 'x-request-id': own } })
      assert.notEqual(res.headers.get('x-request-id'), own)
      assert.equal(calls.at(-1)?.clientRequestId, own)
      assert.equal((await jsonOf<{ id: string }>(res)).id, res.headers.get('x-request-id'))
    }
    await fetch(`${app.url}/llm/a`)
    assert.equal(calls.at(-1)?.clientRequestId, null)
  })

  it('keeps of it only what is short and printable', async () => {
    await new Promise<void>((resolve) => {
      const headers = { 'x-request-id': `a\tb\u00e9${'x'.repeat(1000)}` }
      request(`${app.url}/llm/a`, { headers }, (res) => res.resume().on('end', resolve)).end()
    })
    assert.match(calls[0]?.clientRequestId ?? '', /^a\?b\?x+$/)
    assert.equal(calls[0]?.clientRequestId?.length, 200)
  })

  it('notes method, whole path without the query, time and address', async () => {
    const from = Date.now()
    await fetch(`${app.url}/llm/v1/messages?key=sk-secret`, { method: 'PUT' })
    const call = calls[0]!
    assert.deepEqual([call.method, call.path, call.clientIp], ['PUT', '/llm/v1/messages', '127.0.0.1'])
    assert.equal(call.protocol.name, 'anthropic')
    assert.ok(call.startedAt >= from && call.startedAt <= Date.now())
  })

  it('opens one call per request, however often it is mounted', async () => {
    const res = await fetch(`${app.url}/llm/a`)
    assert.equal(calls.length, 1)
    assert.equal((await jsonOf<{ id: string }>(res)).id, calls[0]?.id)
    assert.equal(calls[0]?.protocol.name, 'openai')
  })

  it('lets onBegin refuse the call', async () => {
    const res = await fetch(`${app.url}/llm/a`, { headers: { 'x-refuse': '1' } })
    assert.equal(res.status, 403)
    assert.equal((await envelopeOf(res)).request_id, calls[0]?.id)
    assert.equal(handled, 0)
  })

  it('takes the protocol from the app where the app says so', async () => {
    const paths: string[] = []
    const own = await serveApp((app) => {
      const protocol = (path: string) => {
        paths.push(path)
        return path.startsWith('/claude') ? PROTOCOLS.anthropic : PROTOCOLS.openai
      }
      app.use(beginCall({ protocol }), unknownPath(), errorEnvelope())
    })
    const ask = async (path: string) => envelopeOf(await fetch(own.url + path))
    assert.equal((await ask('/claude/ask?x=1')).type, 'error')
    assert.equal((await ask('/v1/messages')).error.code, 'not_found')
    assert.deepEqual(paths, ['/claude/ask', '/v1/messages'])
    await own.close()
  })

  it('an app that sets X-Request-Id itself does not part the header from the body', async () => {
    const own = await serveApp((app) => {
      app.use(beginCall(), (_req, res, next) => {
        res.set('X-Request-Id', 'the-apps-own')
        next()
      })
      app.use(unknownPath(), errorEnvelope())
    })
    const res = await fetch(own.url)
    assert.equal(res.headers.get('x-request-id'), (await envelopeOf(res)).request_id)
    await own.close()
  })
})

describe('callOf', () => {
  it('says what to do when there is no response to end the call by', () => {
    assert.throws(() => callOf({ headers: {} } as never), /openCall\(req, res\)/)
  })
})

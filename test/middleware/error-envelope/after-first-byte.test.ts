import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import type { Response as ExpressResponse } from 'express'
import type { Call } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { PROTOCOLS, readFrame } from '../../../lib/core/protocols/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type AppServer, eventually, rawClient, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

let app: AppServer
let write: (res: ExpressResponse) => void
let thrown: unknown
const calls: Call[] = []
/** In the place of an error: the handler has not come to its end. */
const HELD = Symbol('held')

const cleanUp = cleaningUp()
before(async () => {
  app = await serveApp((app) => {
    const logger = { info() {}, warn() {}, error() {} }
    app.use(beginCall({ logger, onBegin: (call) => void calls.push(call) }), (_req, res, next) => {
      write(res)
      if (thrown !== HELD) next(thrown)
    })
    app.use(errorEnvelope())
  })
  cleanUp.after(() => app.close())
})
beforeEach(() => {
  calls.length = 0
})

const events = (res: ExpressResponse) => {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  res.write('data: {"n":1}\n\n')
}

/** The bytes of an answer over HTTP/1.1, its head cut off, and whether the regular end came. */
async function answerOf(path: string): Promise<{ head: string; body: string; whole: boolean }> {
  const received = await rawClient(app.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).end()
  const [head = '', ...rest] = received.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  return { head, body, whole: body.endsWith('0\r\n') || body.endsWith('0\r\n\r\n') }
}

for (const [path, protocol] of [
  ['/v1/chat/completions', 'openai'],
  ['/v1/messages', 'anthropic'],
  ['/api/v3/contents/generations/tasks', 'ark'],
] as const) {
  describe(`a stream that breaks off, ${protocol}`, () => {
    it('ends with the protocol’s error event, same request id, and without the terminating chunk', async () => {
      write = events
      thrown = new GatewayError('upstream_timeout')
      const { head, body, whole } = await answerOf(path)
      const id = /x-request-id: (req_\w+)/i.exec(head)?.[1] ?? ''
      const event = PROTOCOLS[protocol].streamError(thrown as GatewayError, id)
      assert.match(head, /^HTTP\/1\.1 200/)
      assert.ok(body.includes('data: {"n":1}\n\n'))
      assert.equal(body.includes(event), true, body)
      assert.equal(whole, false)
      assert.equal(JSON.parse(readFrame(event).data).request_id, id)
      await eventually(() => calls[0]?.ended === true)
      assert.deepEqual(calls[0]?.outcome, {
        status: 200,
        errorCode: 'upstream_timeout',
        finish: 'interrupted',
      })
    })

    it('is seen by fetch as a truncated body, every event before it having come', async () => {
      write = events
      thrown = new GatewayError('upstream_error')
      const res = await fetch(app.url + path)
      let text = ''
      await assert.rejects(async () => {
        for await (const chunk of res.body!) text += Buffer.from(chunk).toString()
      })
      assert.equal(res.status, 200)
      assert.match(text, /^data: \{"n":1\}\n\n(?:event: error\n)?data: \{.*\}\n\n$/)
    })

    it('gives an unforeseen error away in the stream no more than in a body', async () => {
      write = events
      thrown = new Error('password=hunter2')
      const { body } = await answerOf(path)
      assert.doesNotMatch(body, /hunter2/)
      assert.match(body, /An internal error occurred/)
    })
  })
}

describe('a plain body that breaks off', () => {
  it('chunked: gets no error text, and no regular end', async () => {
    write = (res) => {
      res.type('json').write('{"part":')
    }
    thrown = new GatewayError('upstream_error')
    const { body, whole } = await answerOf('/v1/chat/completions')
    assert.equal(body, '8\r\n{"part":\r\n')
    assert.equal(whole, false)
    await assert.rejects(fetch(`${app.url}/v1/chat/completions`).then((res) => res.text()))
  })

  it('with a length: is shorter than it, so that fetch refuses it', async () => {
    write = (res) => {
      res.set('content-length', '100').type('text').write('part')
    }
    thrown = new GatewayError('upstream_error')
    await assert.rejects(fetch(`${app.url}/v1/chat/completions`).then((res) => res.text()))
  })

  it('flushed headers alone are past the point of an envelope too', async () => {
    write = (res) => res.flushHeaders()
    thrown = new GatewayError('upstream_error')
    const { head, body } = await answerOf('/v1/chat/completions')
    assert.match(head, /^HTTP\/1\.1 200/)
    assert.equal(body, '')
  })
})

describe('an answer that breaks off behind another one of its connection', () => {
  it('comes behind the whole of the other, without a regular end, and closes the connection', async () => {
    let endFirst = (): void => assert.fail('the first request has not come')
    let begun = 0
    write = (res) => {
      if (begun++ === 0) {
        endFirst = () => void res.end('the whole first answer')
        thrown = HELD
      } else {
        events(res)
        thrown = new GatewayError('upstream_error')
      }
    }
    const head = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
    const client = rawClient(app.port, head('/held') + head('/v1/messages'))
    await eventually(() => calls[1]?.outcome?.errorCode === 'upstream_error')
    assert.equal(client.received, '')
    endFirst()
    const received = await client.end()
    const [first = '', second = ''] = received.split(/(?=HTTP\/1\.1 200)/)
    assert.ok(first.endsWith('the whole first answer'), first)
    assert.match(second, /data: \{"n":1\}\n\n/)
    assert.match(second, /event: error\n/)
    assert.doesNotMatch(second, /\r\n0\r\n/)
    await eventually(() => calls.every(({ ended }) => ended))
  })
})

describe('an error after the end', () => {
  it('leaves a whole answer as it is, and the connection open', async () => {
    write = (res) => res.end('whole')
    thrown = new GatewayError('upstream_error')
    const twice = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    const received = await rawClient(app.port, twice).end()
    assert.equal(received.match(/whole/g)?.length, 2)
    assert.doesNotMatch(received, /error/)
  })

  it('is not written to a caller that has gone', async () => {
    write = (res) => res.destroy()
    thrown = new GatewayError('upstream_error')
    assert.equal(await rawClient(app.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').end(), '')
    await eventually(() => calls[0]?.ended === true)
  })
})

describe('a caller that reads no more', () => {
  it('is let go of some seconds after its answer broke off, so that its call ends', {
    timeout: 20_000,
  }, async (t) => {
    write = (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('x'.repeat(30_000_000))
    }
    thrown = new GatewayError('upstream_timeout')
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const client = rawClient(app.port)
    client.socket.pause()
    client.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    while (!calls[0]?.outcome) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(calls[0].ended, false)
    t.mock.timers.tick(10_000)
    while (!calls[0].ended) await new Promise((resolve) => setImmediate(resolve))
    client.socket.destroy()
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import fc from 'fast-check'
import { callOf, errorEnvelope, readRequest } from '../../../lib/index.ts'
import { rawClient, serveApp } from '../../support/app-server.ts'
import { catalog } from '../../support/one-line-catalog.ts'
import { until } from '../../support/until.ts'

const bodyOf = (text: string) =>
  JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: text }] })

/** A server that answers with the bodies that it read, behind some other middlewares. */
async function serverOf(t: TestContext, ...before: RequestHandler[]) {
  const served: string[] = []
  let ended = 0
  const { port, close } = await serveApp((app) =>
    app
      .use((req, _res, next) => {
        req.on('end', () => ended++)
        next()
      })
      .post('/v1/chat/completions', ...before, readRequest({ catalog }), (req, res) => {
        const raw = callOf(req).request?.body.raw.toString() ?? ''
        served.push(raw)
        res.send(raw)
      })
      .use(errorEnvelope()),
  )
  t.after(close)
  const client = rawClient(port)
  client.socket.setNoDelay().setEncoding('utf8')
  t.after(() => client.socket.destroy())
  return { client, socket: client.socket, served, ended: () => ended }
}

const requestOf = (body: string) =>
  Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )

describe('a small body', () => {
  it('is read whole in whatever packets it comes, one request after the other', async (t) => {
    const { client, socket, served, ended } = await serverOf(t)
    const cuts = fc.array(fc.nat(400), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 200, unit: 'grapheme' }), cuts, async (text, places) => {
        const body = bodyOf(text)
        const bytes = requestOf(body)
        const [count, seen] = [served.length, client.received.length]
        let from = 0
        for (const at of [...places, bytes.length].toSorted((one, other) => one - other)) {
          if (at > from) socket.write(bytes.subarray(from, at))
          from = Math.max(from, at)
          await turn()
          await turn()
        }
        await until(() => client.received.slice(seen).endsWith(body), 'the answer')
        assert.deepEqual(served.slice(count), [body])
        await until(() => ended() === count + 1, 'the end of the request, for whoever waits for it')
      }),
      { numRuns: 150 },
    )
  })

  it('reaches those too who listen to the request already', async (t) => {
    const heard: string[] = []
    const { socket, served } = await serverOf(t, (req, _res, next) => {
      req.on('data', (chunk: Buffer) => heard.push(chunk.toString()))
      next()
    })
    const bytes = requestOf(bodyOf('hi'))
    socket.write(bytes.subarray(0, -10))
    await turn()
    socket.write(bytes.subarray(-10))
    await until(() => served.length === 1, 'the answer')
    assert.equal(heard.join(''), bodyOf('hi'))
  })

  for (const left of [10, bodyOf('hi').length])
    it(`runs no handler when its caller leaves before the last ${left} bytes`, async (t) => {
      const { socket, served } = await serverOf(t)
      const refused = once(socket, 'close')
      socket.write(requestOf(bodyOf('hi')).subarray(0, -left))
      await turn()
      socket.destroy()
      await refused
      await new Promise((resolve) => setTimeout(resolve, 50))
      assert.deepEqual(served, [])
    })
})

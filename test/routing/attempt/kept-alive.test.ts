import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exchange, gatewayFor, OPENAI } from '../../support/exchange.ts'
import { startRawServer } from '../../support/raw-server.ts'

const BODY = JSON.stringify({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`
const circuit = { minimumCalls: 1, errorPercent: 1 }

describe('a kept-alive connection', () => {
  it('is used again', async (t) => {
    const server = await startRawServer((socket) => socket.write(ANSWER))
    t.after(() => server.close())
    const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
    for (let i = 0; i < 4; i++) assert.equal((await exchange(gateway)).status, 200)
    assert.equal(server.connections, 1)
  })

  it('is not used again if its line answered before it had read the request', async (t) => {
    const refusal = '{"error":{"message":"no","type":"invalid_request_error"}}'
    const server = await startRawServer((socket, _request, connection) => {
      if (connection > 0) socket.write(ANSWER)
      else {
        socket.pause()
        socket.write(
          `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${refusal.length}\r\n\r\n${refusal}`,
        )
      }
    })
    t.after(() => server.close())
    const timeouts = { firstByteMs: 2000 }
    const gateway = await gatewayFor(t, { lines: [{ url: server.url, circuit, timeouts }] })
    const long = [{ role: 'user', content: 'word '.repeat(2_000_000) }]
    assert.equal((await exchange(gateway, OPENAI, { messages: long })).status, 400)
    const next = await exchange(gateway)
    assert.equal(next.status, 200, next.text)
    assert.equal(server.connections, 2)
  })

  it('that was never used before is not replaced when it dies', async (t) => {
    const server = await startRawServer((socket) => socket.destroy())
    t.after(() => server.close())
    const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
    assert.equal((await exchange(gateway)).status, 502)
    assert.equal(server.connections, 1)
  })
})

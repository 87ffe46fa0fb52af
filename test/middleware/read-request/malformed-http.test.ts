import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { KEY } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'

// Node's own parser refuses these before there is a request, so no middleware runs and there is no envelope. What a
// caller can rely on: an answer or a closed connection, nothing sent upstream, no call left open, and a server that
// goes on serving.

const head = (lines: string) =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${lines}\r\n`
const VALID = '{"model":"chat","messages":[{"role":"user","content":"hi"}]}'

const malformed: [name: string, bytes: string, answer: RegExp][] = [
  ['no HTTP at all', 'hello\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['an unknown method', 'FETCH / HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['no Host', 'GET /v1/models HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['a header without a colon', head('oops\r\n'), /^HTTP\/1\.1 400 /],
  ['a length that is no number', head('content-length: x\r\n'), /^HTTP\/1\.1 400 /],
  ['two lengths', head('content-length: 1\r\ncontent-length: 2\r\n'), /^HTTP\/1\.1 400 /],
  ['a length and chunks', head('content-length: 1\r\ntransfer-encoding: chunked\r\n'), /^HTTP\/1\.1 400 /],
  ['headers over 16 KiB', head(`x: ${'x'.repeat(20_000)}\r\n`), /^HTTP\/1\.1 431 /],
  ['an Expect that nobody can meet', head('expect: miracles\r\ncontent-length: 0\r\n'), /^HTTP\/1\.1 417 /],
  ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', /^$/],
]

describe('malformed HTTP', async () => {
  const { upstream, gateway } = await suiteGateway()

  /** Sends bytes, ends its side, and resolves with all that came back. */
  function send(bytes: string): Promise<string> {
    const { port, hostname } = new URL(gateway.url)
    return new Promise((resolve) => {
      let answer = ''
      const socket = connect(Number(port), hostname)
      socket.on('data', (data) => {
        answer += data.toString()
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve(answer))
      socket.end(bytes)
    })
  }

  for (const [name, bytes, answer] of malformed) {
    it(`${name}: refused by Node itself`, async () => {
      assert.match(await send(bytes), answer)
      assert.equal(upstream.requests.length, 0)
    })
  }

  for (const [name, bytes] of [
    ['a body shorter than its length', `${head('content-length: 500\r\n')}${VALID}`],
    ['a chunked body without an end', `${head('transfer-encoding: chunked\r\n')}ff\r\n${VALID}`],
    ['a chunk size that is no number', `${head('transfer-encoding: chunked\r\n')}zz\r\n${VALID}`],
  ] as const) {
    it(`${name}, from a caller that then closes: nothing is sent upstream and no call stays open`, async () => {
      await send(bytes)
      assert.equal(upstream.requests.length, 0)
      while (gateway.openCalls.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
      assert.deepEqual(gateway.logged, [])
    })
  }

  it('is forgotten at once: the next request is served', async () => {
    assert.equal((await gateway.post('/v1/chat/completions', VALID)).status, 200)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { guardedGateway, KEY, OTHER_KEY, statusesIn } from './guarded-gateway.ts'

const BODY = '{"model":"chat","messages":[{"role":"user","content":"hi"}]}'
/** The text that an attacker wants to pass off as somebody's next request. */
const SMUGGLED = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${OTHER_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\nconnection: close\r\n\r\n${BODY}`

const head = (lines: readonly string[], end = '\r\n') =>
  [
    'POST /v1/chat/completions HTTP/1.1',
    'host: x',
    `authorization: Bearer ${KEY}`,
    'content-type: application/json',
    ...lines,
    '',
    '',
  ].join(end)
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const WHOLE = `${chunk(BODY)}0\r\n\r\n`

describe('a request whose end can be read in two ways is refused, and nothing behind it is run', async () => {
  const { gateway, upstream, say } = await guardedGateway()

  for (const [name, bytes] of [
    ['two lengths', head(['content-length: 0', `content-length: ${BODY.length}`]) + BODY],
    ['two equal lengths', head(['content-length: 5', 'content-length: 5']) + BODY],
    ['a list of lengths', head(['content-length: 5, 5']) + BODY],
    ['a signed length', head([`content-length: +${BODY.length}`]) + BODY],
    ['a length in hex', head(['content-length: 0x10']) + BODY],
    ['a negative length', head(['content-length: -1']) + BODY],
    ['a length beyond all numbers', head([`content-length: 1${'0'.repeat(30)}`]) + BODY],
    ['a length and chunks', head(['content-length: 5', 'transfer-encoding: chunked']) + WHOLE],
    ['chunks and a length', head(['transfer-encoding: chunked', 'content-length: 5']) + WHOLE],
    ['chunks that are not last', head(['transfer-encoding: chunked, identity']) + WHOLE],
    ['chunks twice', head(['transfer-encoding: chunked', 'transfer-encoding: chunked']) + WHOLE],
    ['an encoding that is nearly chunked', head(['transfer-encoding: xchunked']) + WHOLE],
    ['a space before the colon', head(['transfer-encoding : chunked']) + WHOLE],
    ['a tab before the colon', head(['content-length\t: 5']) + BODY],
    ['a header folded over two lines', head(['transfer-encoding:', ' chunked']) + WHOLE],
    ['another header folded', head(['x-a: b', ' content-length: 5']) + BODY],
    ['lines that end in LF alone', head(['content-length: 5'], '\n') + BODY],
    ['a CR alone in a header', head(['x-a: b\rcontent-length: 5']) + BODY],
    ['a NUL in a header', head(['x-a: \0', 'content-length: 5']) + BODY],
    ['a chunk size with a sign', `${head(['transfer-encoding: chunked'])}+5\r\nhello\r\n0\r\n\r\n`],
    ['a chunk size beyond all numbers', `${head(['transfer-encoding: chunked'])}fffffffffffffffff\r\n`],
    ['a chunk longer than it says', `${head(['transfer-encoding: chunked'])}1\r\n${BODY}\r\n0\r\n\r\n`],
    ['chunk lines that end in LF alone', `${head(['transfer-encoding: chunked'])}5\nhello\n0\n\n`],
    [
      'a chunk extension with a line of its own',
      `${head(['transfer-encoding: chunked'])}5;\n\r\nhello\r\n0\r\n\r\n`,
    ],
    ['HTTP/1.0 with chunks', head(['transfer-encoding: chunked']).replace('/1.1', '/1.0') + WHOLE],
  ] as const) {
    it(name, async () => {
      const received = await say(bytes + SMUGGLED)
      const statuses = statusesIn(received)
      assert.ok(statuses.length <= 1 && statuses.every((status) => status === 400), received)
      assert.equal(upstream.requests.length, 0, 'nothing was run')
    })
  }

  it('two credentials in two headers of one name are none: no proxy can have meant the other', async () => {
    const received = await say(
      head([`authorization: Bearer ${OTHER_KEY}`, `content-length: ${BODY.length}`, 'connection: close']) +
        BODY,
    )
    assert.deepEqual(statusesIn(received), [401])
    assert.match(received, /"invalid_credential"/)
    assert.equal(upstream.requests.length, 0)
  })

  it('two requests that are rightly behind one another are two', async () => {
    const received = await say(head([`content-length: ${BODY.length}`]) + BODY + SMUGGLED)
    assert.deepEqual(statusesIn(received), [200, 200])
    assert.equal(upstream.requests.length, 2)
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200)
  })
})

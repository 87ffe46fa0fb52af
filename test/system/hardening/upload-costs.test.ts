import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITH_LOOP_FIGURES } from '../../support/loop-figures.ts'
import { answerJson } from '../../support/scripted-upstream.ts'
import { type Cost, costOf, judge } from './cost-meter.ts'
import { guardedGateway, KEY, statusesIn } from './guarded-gateway.ts'
import { filled } from './hostile-rows.ts'

const SIZE = 1024 * 1024
/** Bytes of a piece. Below 32 on average, a body is refused once it has come in thousands of pieces. */
const PIECES: readonly (readonly [bytes: number, status: number])[] = [
  [1, 400],
  [16, 400],
  [33, 200],
  [1000, 200],
]

const form = (part: string, filename = 'f'): string =>
  `--b\r\ncontent-disposition: form-data; name="file"; filename="${filename}"\r\n\r\n${part}\r\n--b--\r\n`

const BODIES: Readonly<Record<string, readonly [type: string, body: string]>> = {
  binary: ['application/octet-stream', 'x'.repeat(SIZE)],
  'of any other type': ['text/plain', 'x'.repeat(SIZE)],
  'a form with a file': ['multipart/form-data; boundary=b', form('x'.repeat(SIZE))],
  'a form of beginnings of a boundary': ['multipart/form-data; boundary=b', form(filled('\r\n--', SIZE))],
  'a form of long heads': [
    'multipart/form-data; boundary=b',
    `${form('', 'x'.repeat(15_000))
      .replace('--b--\r\n', '')
      .repeat(SIZE / 15_100)}--b--\r\n`,
  ],
}

describe('a body that is passed on in small pieces', async () => {
  const upstream = await byteUpstream(cleaningUp(), (req, res) => {
    req.on('end', () => answerJson(res, 200, { id: 'upload-1' })).on('error', () => {})
    req.resume()
  })
  const { gateway } = await guardedGateway(WITH_LOOP_FIGURES, undefined, () => ({
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
    ],
    passThrough: [{ path: '/v1/uploads', lines: ['l'], methods: ['POST'], raw: true }],
  }))

  const head = (type: string): string =>
    `POST /v1/uploads HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: ${type}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n`

  function chunked(body: string, bytes: number): string {
    const pieces: string[] = []
    for (let at = 0; at < body.length; at += bytes) {
      const piece = body.slice(at, at + bytes)
      pieces.push(`${piece.length.toString(16)}\r\n${piece}\r\n`)
    }
    return `${pieces.join('')}0\r\n\r\n`
  }

  for (const [what, [type, body]] of Object.entries(BODIES)) {
    it(`costs no more than its bytes are worth: ${what}`, async () => {
      const costs: Cost[] = []
      for (const [bytes, expected] of PIECES) {
        const sent = head(type) + chunked(body, bytes)
        const act = async () => {
          const [status] = statusesIn(await rawClient(gateway.port, sent).end())
          assert.equal(status, expected, `pieces of ${bytes}`)
        }
        costs.push(await costOf(gateway, sent.length, act, `${what}, in pieces of ${bytes}`))
      }
      judge(costs)
    })
  }
})

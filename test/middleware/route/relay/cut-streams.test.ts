import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { dataOf, eventsOf, exchange, gatewayFor, modeName, STREAMS } from '../../../support/exchange.ts'
import { chatChunk, startUpstream } from '../../../support/scripted-upstream.ts'

/** How the connection of a stream ends that is cut: with or without a length that shows it. */
const FRAMINGS = {
  'of known length': (size: number) => `content-length: ${size}`,
  'in chunks': () => 'transfer-encoding: chunked',
  'up to the end of the connection': () => 'connection: close',
}
type Framing = keyof typeof FRAMINGS

const FRAMING_NAMES = Object.keys(FRAMINGS) as Framing[]

/** Sends the first bytes of a stream and closes the connection. */
function cutStream(res: ServerResponse, events: string, bytes: number, framing: Framing): void {
  const whole = Buffer.from(events)
  const chunk = framing === 'in chunks' ? `${whole.length.toString(16)}\r\n` : ''
  const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${FRAMINGS[framing](whole.length)}\r\n\r\n${chunk}`
  res.socket?.end(Buffer.concat([Buffer.from(head), whole.subarray(0, bytes)]))
}

const WORDS = ['Größe', ' 世界', ' 😀']
const circuit = { minimumCalls: 100_000 }

/** The two choices of a chat, one behind the other, with the bytes up to the end of each. */
const CHOICES = [0, 1].map((index) =>
  [
    chatChunk({ role: 'assistant', content: '' }),
    ...WORDS.map((content) => chatChunk({ content })),
    chatChunk({}, 'stop'),
  ]
    .join('')
    .replaceAll('"index":0', `"index":${index}`),
) as [string, string]

const image = (index: number) =>
  `event: image_generation.completed\ndata: ${JSON.stringify({ type: 'image_generation.completed', b64_json: 'AAAA', index })}\n\n`

describe('a stream that is cut', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  for (const mode of STREAMS) {
    for (const framing of FRAMING_NAMES) {
      it(`is complete from its finish reason on, wherever it is cut (${modeName(mode)}, ${framing})`, async (t) => {
        const { protocol } = mode
        const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol, circuit }] })
        const events = eventsOf(mode, WORDS)
        const finish = events.findIndex((event) => /"(?:finish|stop)_reason":"/.test(event))
        const from = Buffer.byteLength(events.slice(0, finish + 1).join(''))
        const size = Buffer.byteLength(events.join(''))
        // Each framing has other places.
        for (let bytes = from + FRAMING_NAMES.indexOf(framing); bytes < size; bytes += 7) {
          upstream.script = (res) => cutStream(res, events.join(''), bytes, framing)
          const got = await exchange(
            gateway,
            mode,
            protocol === 'openai' ? { stream_options: { include_usage: true } } : {},
          )
          const at = `cut behind ${bytes} of ${size} bytes`
          assert.deepEqual([got.status, got.broken], [200, false], at)
          assert.match(
            got.text,
            protocol === 'openai' ? /data: \[DONE\]\n\n$/ : /event: message_stop\ndata: .*\n\n$/,
            at,
          )
          assert.doesNotMatch(got.text, /"error"/, at)
          // A client reads each event, so that none may be cut.
          for (const event of got.text.split(/\n{2,}/))
            if (event !== '') assert.match(event, /^data: \[DONE\]$|(?:^|\n)data: \{.*\}$/, at)
        }
      })
    }
  }

  for (const framing of FRAMING_NAMES) {
    it(`is broken as long as an answer that was asked for has not finished (${framing})`, async (t) => {
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, circuit }] })
      const [first, second] = CHOICES
      // An answer that ends with its connection, between two events, may be complete.
      const from = Buffer.byteLength(first) + (framing === 'up to the end of the connection' ? 1 : 0)
      const to = Buffer.byteLength(first + second) - 3
      for (let bytes = from; bytes < to; bytes += 41) {
        upstream.script = (res) => cutStream(res, first + second, bytes, framing)
        const got = await exchange(gateway, { protocol: 'openai', stream: true }, { n: 2 })
        const at = `cut behind ${bytes} bytes`
        assert.deepEqual([got.status, got.broken], [200, true], at)
        assert.doesNotMatch(got.text, /\[DONE\]/, at)
        const last = dataOf(got.text).at(-1)
        assert.equal(last?.error?.code, 'upstream_error', at)
      }
    })
  }

  it('is broken behind one of two images', async (t) => {
    const gateway = await gatewayFor(t, {
      lines: [{ url: upstream.url, circuit }],
      config: { models: [{ id: 'chat', kind: 'image' }] },
    })
    upstream.script = (res) => cutStream(res, image(0) + image(1), image(0).length, 'in chunks')
    const body = { model: 'chat', prompt: 'A river', stream: true, n: 2 }
    const response = await gateway.post('/v1/images/generations', body)
    let text = ''
    await assert.rejects(async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString()
    })
    assert.match(text, /image_generation\.completed[\s\S]*"code":"upstream_error"/)
  })
})

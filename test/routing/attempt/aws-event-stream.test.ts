import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { BrokenEventStream, readAwsEventStream } from '../../../lib/routing/attempt/aws-event-stream.ts'
import { ANTHROPIC_STREAM, exchange, gatewayFor, OPENAI_STREAM } from '../../support/exchange.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { awsChunk, awsMessage } from '../../system/providers/bedrock-twin.ts'

const TYPE = 'application/vnd.amazon.eventstream'

/** The text of bytes that arrive in pieces, and how their stream ends. */
async function decoded(bytes: Buffer, cuts: readonly number[]): Promise<{ text: string; end: string }> {
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  )
  const pieces = places.map((place, i) => bytes.subarray(place, places[i + 1] ?? bytes.length))
  let text = ''
  try {
    for await (const chunk of readAwsEventStream(Readable.from(pieces.filter(({ length }) => length > 0))))
      text += chunk.toString()
    return { text, end: 'ended' }
  } catch (error) {
    assert.ok(error instanceof BrokenEventStream, String(error))
    return { text, end: 'failed' }
  }
}

const events = fc.array(
  fc.record({ type: fc.constantFrom('a', 'b'), text: fc.string({ unit: 'binary' }), n: fc.integer() }),
  { maxLength: 6 },
)
const cuts = fc.array(fc.nat(5000), { maxLength: 8 })

describe('an event stream of AWS', () => {
  it('becomes the same server-sent events for any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(events, cuts, async (list, at) => {
        const bytes = Buffer.concat(list.map(awsChunk))
        const sse = list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
        assert.deepEqual(await decoded(bytes, at), { text: sse, end: 'ended' })
      }),
    )
  })

  it('fails if it is damaged at any place, without a wrong event', async () => {
    const list = [
      { type: 'a', text: 'one' },
      { type: 'b', text: 'two' },
    ]
    const bytes = Buffer.concat(list.map(awsChunk))
    const whole = (await decoded(bytes, [])).text
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length - 1),
        fc.integer({ min: 1, max: 255 }),
        cuts,
        async (place, flip, at) => {
          const broken = Buffer.from(bytes)
          broken[place] = (broken[place] ?? 0) ^ flip
          const { text, end } = await decoded(broken, at)
          assert.equal(end, 'failed')
          assert.ok(whole.startsWith(text) && text !== whole)
          const short = await decoded(bytes.subarray(0, place), at)
          assert.ok(whole.startsWith(short.text))
          assert.equal(short.end, [0, awsChunk(list[0] ?? {}).length].includes(place) ? 'ended' : 'failed')
        },
      ),
    )
  })

  it('gives OpenAI-style events no name, and omits members about the account', async () => {
    const bytes = Buffer.from(awsChunk({ choices: [], 'amazon-bedrock-trace': { a: 1 } }))
    assert.equal((await decoded(bytes, [])).text, 'data: {"choices":[]}\n\n')
    const other = Buffer.from(awsMessage({ ':event-type': 'ping', ':message-type': 'event' }, {}))
    assert.deepEqual(await decoded(other, []), { text: '', end: 'ended' })
  })

  it('becomes one server-sent event for each, of any type', async () => {
    for (const type of ['a\ndata: {}\n\n', 'a\rb', '', '\u2028']) {
      const data = `data: ${JSON.stringify({ type })}\n\n`
      assert.deepEqual(await decoded(Buffer.from(awsChunk({ type })), []), { text: data, end: 'ended' })
    }
  })

  const exceptions: [exception: string, code: string][] = [
    ['throttlingException', 'upstream_rate_limited'],
    ['serviceUnavailableException', 'upstream_overloaded'],
    ['internalServerException', 'upstream_error'],
    ['modelStreamErrorException', 'upstream_error'],
    ['modelTimeoutException', 'upstream_error'],
    ['validationException', 'invalid_request'],
  ]
  for (const [exception, code] of exceptions)
    for (const mode of [ANTHROPIC_STREAM, OPENAI_STREAM])
      it(`that begins with ${exception} is ${code}: ${mode.protocol}`, async (t) => {
        const upstream = await startUpstream((res) => {
          const headers = { ':exception-type': exception, ':message-type': 'exception' }
          res.writeHead(200, { 'content-type': TYPE }).end(awsMessage(headers, { message: 'busy' }))
        })
        t.after(() => upstream.close())
        const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: mode.protocol }] })
        const { requestId } = await exchange(gateway, mode)
        assert.equal((await gateway.entry(requestId)).error_code, code)
      })
})

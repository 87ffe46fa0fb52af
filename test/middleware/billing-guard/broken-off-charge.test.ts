import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { estimateTokens } from '../../../lib/core/operations/metering/token-estimate.ts'
import { twoWords, upTo } from '../../ledger/support/two-words.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { bodyOf, type Mode, modeName, OPENAI_STREAM, pathOf, STREAMS } from '../../support/exchange.ts'
import { chatChunk, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { assertCharged, billedGateway } from './billed-gateway.ts'

/** Reads a response, and returns whether it ends before it is whole. Calls `onSeen` when the text has come. */
async function breaksOff(response: Response, text: string, onSeen = () => {}): Promise<boolean> {
  let received = ''
  try {
    for await (const chunk of response.body ?? []) {
      received += Buffer.from(chunk as Uint8Array).toString()
      if (received.includes(text)) onSeen()
    }
    return false
  } catch {
    assert.ok(received.includes(text))
    return true
  }
}

describe('a stream that its line breaks off', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  const BREAKS: [does: string, breaks: (res: ServerResponse, mode: Mode) => void, timeouts?: object][] = [
    ['resets the connection', (res) => res.socket?.resetAndDestroy()],
    ['ends without a finish reason', (res) => res.end()],
    ['sends an error event', (res) => res.write('event: error\ndata: {"type":"error","error":{}}\n\n')],
    ['falls silent', () => {}, { idleMs: 1000 }],
    ['is out of time', () => {}, { totalMs: 2000 }],
  ]
  for (const [does, breaks, timeouts] of BREAKS) {
    for (const mode of STREAMS) {
      it(`is charged for what it said, once: the line ${does} (${modeName(mode)})`, async (t) => {
        const seen = Promise.withResolvers<void>()
        upstream.script = async (res) => {
          // In one write, so that no clock runs out between two events.
          await stream(res, [upTo(mode, ' upon').join('')], { end: false })
          await seen.promise
          breaks(res, mode)
        }
        const { protocol } = mode
        const gateway = await billedGateway(t, { lines: [{ url: upstream.url, protocol, timeouts }] })
        const response = await gateway.post(pathOf(mode), bodyOf(mode))
        assert.equal(await breaksOff(response, ' upon', seen.resolve), true)
        const entry = await gateway.entry(response.headers.get('x-request-id'))
        assert.deepEqual([entry.status, entry.outcome], [200, 'interrupted'])
        await assertCharged(gateway, entry, twoWords(mode), 'estimated')
      })
    }
  }

  const FOX = 'The quick brown fox jumps over the lazy dog.'
  const COUNTED: [counted: number, behind: string[], output: number, what: string][] = [
    [30, [], 30, 'what was counted on the way'],
    [30, [' upon'], 31, 'what was counted on the way, and an estimate of what came behind'],
    [1, [], estimateTokens(FOX), 'no less than what passed through where the count lags behind'],
  ]
  for (const [counted, behind, output, what] of COUNTED) {
    it(`is charged for ${what}`, async (t) => {
      const details = { prompt_tokens_details: { cached_tokens: 60 } }
      const usage = { prompt_tokens: 100, completion_tokens: counted, ...details }
      const events = [
        chatChunk({ content: FOX }, null, { usage }),
        ...behind.map((content) => chatChunk({ content })),
      ]
      upstream.script = async (res) => {
        await stream(res, events, { end: false })
        res.socket?.end()
      }
      const gateway = await billedGateway(t, { lines: [{ url: upstream.url }] })
      const response = await gateway.post(pathOf(OPENAI_STREAM), bodyOf(OPENAI_STREAM))
      assert.equal(await breaksOff(response, 'lazy'), true)
      const entry = await gateway.entry(response.headers.get('x-request-id'))
      await assertCharged(gateway, entry, [100, 60, 0, output], 'estimated')
    })
  }
})

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bodyOf, gatewayFor, OPENAI_STREAM, pathOf } from '../../../support/exchange.ts'
import { KEY } from '../../../support/gateway.ts'
import { chatChunk, chatEvents, startUpstream } from '../../../support/scripted-upstream.ts'

describe('a caller who is slower than the upstream', () => {
  it('holds the upstream back, and is no fault of the line: the idle clock stands still', async (t) => {
    const chunk = chatChunk({ content: 'x'.repeat(64 * 1024) })
    let written = 0
    const WHOLE = 400
    const upstream = await startUpstream(async (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      for (; written < WHOLE && !res.destroyed; written++) {
        if (!res.write(chunk)) await new Promise((resolve) => res.once('drain', resolve))
      }
      for (const event of chatEvents([]).slice(1)) res.write(event)
      res.end()
    })
    t.after(() => upstream.close())
    const gateway = await gatewayFor(t, {
      lines: [{ url: upstream.url, timeouts: { idleMs: 1500 }, circuit: { minimumCalls: 1 } }],
    })
    const { text, stalled } = await new Promise<{ text: string; stalled: number }>((resolve, reject) => {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const req = request(gateway.url + pathOf(OPENAI_STREAM), { method: 'POST', headers }, async (res) => {
        res.pause()
        await sleep(2500)
        const stalled = written
        let text = ''
        res.on('data', (part: Buffer) => (text += part.toString()))
        res.on('end', () => resolve({ text, stalled }))
        res.on('error', reject)
        res.resume()
      })
      req.on('error', reject)
      req.end(JSON.stringify(bodyOf(OPENAI_STREAM)))
    })
    assert.ok(stalled < WHOLE, `${stalled} of ${WHOLE} chunks were taken in although nobody read them`)
    assert.ok(text.endsWith('data: [DONE]\n\n'))
    assert.equal(text.split('"content":"x').length - 1, WHOLE)
    const [line] = gateway.config.catalog.lines
    assert.ok(line)
    assert.equal(gateway.lines.status(line).circuit, 'closed')
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { writeFrames } from '../../../examples/gateway/demo-models/send-answer.ts'
import { drain, openaiFor, user, withServer } from './clients.ts'

describe('streaming', () => {
  it('takes its time between chunks', async () => {
    await withServer({ paceMs: 10 }, async ({ url }) => {
      const started = performance.now()
      const asked = { model: 'demo-chat', messages: user('Hi'), max_tokens: 10, stream: true as const }
      const { items } = await drain(await openaiFor(url).chat.completions.create(asked))
      assert.equal(items.length, 12)
      assert.ok(performance.now() - started >= 80)
    })
  })

  it('waits for a caller that does not read, and makes nothing more once it has left', {
    timeout: 30_000,
  }, async (t) => {
    let made = 0
    let ended = false
    function* endless() {
      try {
        for (;;) {
          made++
          yield 'x'.repeat(16_384)
        }
      } finally {
        ended = true
      }
    }
    const left = new AbortController()
    const outcome = Promise.withResolvers<unknown>()
    const server = createServer((_req, res) => {
      res.once('close', () => left.abort())
      writeFrames(res, endless(), 0, left.signal).then(() => outcome.resolve('finished'), outcome.resolve)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const caller = connect((server.address() as AddressInfo).port, '127.0.0.1')
    t.after(() => {
      caller.destroy()
      server.closeAllConnections()
      server.close()
    })
    caller.write('GET / HTTP/1.1\r\nhost: demo\r\n\r\n')
    caller.pause()

    let seen = -1
    while (made === 0 || made !== seen) {
      seen = made
      await new Promise((resolve) => setTimeout(resolve, 150))
      assert.ok(made * 16_384 < 64 * 1024 * 1024, `${made} frames made for a caller that reads none`)
    }
    assert.equal(ended, false)

    caller.destroy()
    assert.equal(((await outcome.promise) as Error).name, 'AbortError')
    assert.equal(ended, true)
    assert.equal(made, seen)
  })
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

it('an answer is kept up to 8 MiB, unless the app says otherwise', async (t) => {
  const most = 8 * 1024 * 1024
  for (const [options, length, kept] of [
    [{}, most, most],
    [{}, most + 1, most],
    [{ answerLimitBytes: 3 }, 4, 3],
  ] as const) {
    let text: string | null | undefined
    const app = await serveApp((app) => {
      app.post('/', idempotency({ logger: recordingLogger(), ...options }), (req, res) => {
        const call = callOf(req)
        call.onEnd('look', () => queueMicrotask(() => (text = call.idempotency?.responseBody)))
        res.end(Buffer.alloc(length, 'x'))
      })
    })
    t.after(() => app.close())
    await (await fetch(app.url, { method: 'POST', headers: { 'idempotency-key': 'k' } })).arrayBuffer()
    await until(() => text !== undefined, 'the end of the call')
    assert.equal(text, 'x'.repeat(kept) + (length > kept ? `\n[cut after ${kept} bytes]` : ''))
  }
})

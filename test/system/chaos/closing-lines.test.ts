import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exchange, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { startGateway } from '../../support/gateway.ts'
import { chatChunk, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

describe('lines that are closed while calls run', () => {
  it('end those calls with an error, and leave no rejection unhandled', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    const upstream = await startUpstream((res, { json }) => {
      if (json.stream)
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(chatChunk({ content: 'one' }))
    })
    const gateway = await startGateway({ lines: [{ url: upstream.url }] })
    const running = [OPENAI, OPENAI_STREAM, OPENAI_STREAM].map((mode) => exchange(gateway, mode))
    await until(() => upstream.requests.length === 3, 'the requests')
    await new Promise((resolve) => setTimeout(resolve, 50))
    await gateway.lines.close()
    const [plain, ...streams] = await Promise.all(running)
    assert.equal(plain?.errorCode, 'upstream_error')
    for (const { text, broken } of streams) {
      assert.match(text, /"code":"upstream_error"/)
      assert.ok(broken)
    }
    await until(() => gateway.openCalls.size === 0, 'the end of all calls')
    await gateway.close()
    await upstream.close()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    assert.deepEqual(unhandled, [])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  beginCall,
  callOf,
  errorEnvelope,
  LineRegistry,
  loadConfig,
  readRequest,
  route,
} from '../../../lib/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { chatBody } from '../../support/gateway.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

describe('a handler that mounts `route` with a `next` of its own', () => {
  it('may throw there: that is logged, and the call ends with its caller', async (t) => {
    const upstream = await startUpstream((res) => void res.writeHead(500).end())
    t.after(() => upstream.close())
    const { catalog } = loadConfig({
      models: [{ id: 'chat', kind: 'chat' }],
      lines: [
        {
          id: 'line-0',
          provider: 'provider-0',
          protocol: 'openai',
          baseUrl: `${upstream.url}/v1`,
          apiKey: 'upstream-key',
          models: { chat: 'upstream-chat' },
        },
      ],
    })
    const lines = new LineRegistry()
    t.after(() => lines.close())
    const logger = recordingLogger()
    const toLine = route({ catalog, lines })
    let ended = false
    const app = await serveApp((app) => {
      app.use(beginCall({ logger }))
      app.post('/v1/chat/completions', readRequest({ catalog }), (req, res) => {
        callOf(req).onEnd('test', () => {
          ended = true
        })
        toLine(req, res, () => {
          throw new Error('own next')
        })
      })
      app.use(errorEnvelope())
    })
    t.after(app.close)
    const leaving = new AbortController()
    const answer = fetch(`http://127.0.0.1:${app.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(chatBody()),
      signal: leaving.signal,
    })
    await until(() => logger.lines.length === 1, 'the line in the log')
    assert.equal(logger.lines[0]?.message, 'routing failed')
    assert.match(String((logger.lines[0].fields as { err: unknown }).err), /own next/)
    leaving.abort()
    await assert.rejects(answer)
    await until(() => ended, 'the end of the call')
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MAX_BYTES_AT_ONCE } from '../../../lib/core/turns/index.ts'
import { errorEnvelope, loadConfig, readRequest } from '../../../lib/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

const { catalog } = loadConfig({
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:9/v1',
      apiKey: 'k',
      models: { m: 'm' },
    },
  ],
})

describe('a route whose path is no endpoint', () => {
  for (const [route, expected, told] of [
    [
      '/ai',
      { status: 500, code: 'internal_error' },
      [/^readRequest: .* give "operation", such as chatCompletions$/],
    ],
    ['/*all', { status: 404, code: 'not_found' }, []],
    ['/:name', { status: 404, code: 'not_found' }, []],
  ] as const)
    it(`${route}: ${told.length > 0 ? 'is a mistake of the app, which its log names' : 'the caller chose the path'}`, async (t) => {
      const logger = recordingLogger()
      const app = await serveApp((app) => {
        app.post(route, readRequest({ catalog }))
        app.use(errorEnvelope({ logger }))
      })
      t.after(app.close)
      const res = await fetch(`${app.url}/ai`, { method: 'POST', body: '{}' })
      assert.deepEqual({ status: res.status, code: envelopeIn(await res.json()).error.code }, expected)
      const logged = logger.lines.map(({ fields }) => (fields as { err: Error }).err.message)
      assert.equal(logged.length, told.length)
      for (const [i, line] of told.entries()) assert.match(String(logged[i]), line)
    })
})

it('an app without keys reads a large body in its turn, as that of any account', async (t) => {
  const app = await serveApp((app) => {
    app.post('/v1/chat/completions', readRequest({ catalog }), (_req, res) => res.send('read'))
    app.use(errorEnvelope())
  })
  t.after(app.close)
  const messages = [{ role: 'user', content: 'x'.repeat(MAX_BYTES_AT_ONCE + 1) }]
  const body = JSON.stringify({ model: 'm', messages })
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${app.url}/v1/chat/completions`, { method: 'POST', headers, body })
  assert.deepEqual([answer.status, await answer.text()], [200, 'read'])
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ANTHROPIC, exchange, gatewayFor, OPENAI } from '../../support/exchange.ts'
import { answerJson, closedPort, startUpstream } from '../../support/scripted-upstream.ts'

const detailOf = (entry: { routing: { attempts: readonly { detail: string | null }[] } | null }) =>
  entry.routing?.attempts[0]?.detail

for (const mode of [OPENAI, ANTHROPIC]) {
  it(`the trace does not hold the key that an upstream quotes (${mode.protocol})`, async (t) => {
    const upstream = await startUpstream((res, { headers }) => {
      const key = headers.authorization ?? headers['x-api-key']
      const message = `Incorrect API key: ${key} for ${headers['x-tenant']}. ${'x'.repeat(270)}${key}`
      answerJson(res, 401, { error: { type: 'authentication_error', message } })
    })
    t.after(() => upstream.close())
    const gateway = await gatewayFor(t, {
      lines: [
        {
          url: upstream.url,
          protocol: mode.protocol,
          apiKey: 'sk-provider-0123456789',
          headers: { 'x-tenant': 'Token tenant-secret-1' },
        },
      ],
    })
    const entry = await gateway.entry((await exchange(gateway, mode)).requestId)
    assert.doesNotMatch(JSON.stringify(entry), /sk-provider|tenant-secret/)
    assert.equal(
      detailOf(entry),
      mode === OPENAI
        ? 'authentication_error: Incorrect API key Bearer … Token …'
        : 'authentication_error: Incorrect API key … Token …',
    )
  })
}

it('the trace records that a line cannot be reached, but not its address', async (t) => {
  const port = await closedPort()
  const gateway = await gatewayFor(t, {
    lines: [
      { url: `http://127.0.0.1:${port}` },
      // Two dots in a row: the resolver refuses the name itself, without asking anybody.
      { url: 'http://no..such.host' },
    ],
  })
  const { routing } = await gateway.entry((await exchange(gateway)).requestId)
  assert.deepEqual(
    routing?.attempts.map(({ detail }) => detail),
    ['ECONNREFUSED: connect', 'ENOTFOUND: getaddrinfo'],
  )
})

it('the trace names the faulty member of a refused request, and quotes nothing of the prompt', async (t) => {
  const upstream = await startUpstream((res, { json }) => {
    const message = `Cannot read: "${json.messages[0]?.content}"`
    answerJson(res, 400, {
      error: {
        type: 'invalid_request_error',
        code: 'invalid_content',
        param: 'messages[0].content',
        message,
      },
    })
  })
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
  const messages = [{ role: 'user', content: 'a secret prompt' }]
  const response = await gateway.post('/v1/chat/completions', { model: 'chat', messages })
  assert.equal(response.status, 400)
  const entry = await gateway.entry(response.headers.get('x-request-id'))
  assert.equal(detailOf(entry), 'invalid_request_error: invalid_content: messages[].content: Cannot read …')
  assert.doesNotMatch(JSON.stringify(entry), /secret prompt/)
})

it('the trace quotes nothing of a request from a fault of the upstream, and keeps its words about the error', async (t) => {
  const prompt = 'What I tell nobody else. '
  const upstream = await startUpstream((res, { json }) => {
    const quoted = String(json.messages[0]?.content).slice(0, 60)
    answerJson(res, 500, { error: { message: `Worker 7 died over "${quoted}", restart it` } })
  })
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
  for (const content of [prompt, prompt.repeat(20_000)]) {
    const messages = [{ role: 'user', content }]
    const response = await gateway.post('/v1/chat/completions', { model: 'chat', messages })
    assert.equal(response.status, 502)
    const entry = await gateway.entry(response.headers.get('x-request-id'))
    assert.equal(detailOf(entry), '… died … restart …')
  }
})

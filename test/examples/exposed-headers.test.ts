import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startDemoModels } from '../../examples/gateway/demo-models/server.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'

const ORIGIN = 'https://app.example.com'
const MESSAGES = [{ role: 'user', content: 'Hello!' }]

/** The headers that the gateway itself sets. */
const OWN = /^(?:x-(?!content-type-options$)|retry-after|request-id$|anthropic-ratelimit-)/

/** Requests that make it say all of it. */
const REQUESTS: readonly [path: string, body?: object, headers?: Record<string, string>][] = [
  ['/v1/messages', { model: 'a', messages: MESSAGES, max_tokens: 9 }, { 'idempotency-key': 'k' }],
  ['/v1/messages', { model: 'a', messages: MESSAGES, max_tokens: 9 }, { 'idempotency-key': 'k' }],
  ['/v1/messages/count_tokens', { model: 'a', messages: MESSAGES }],
  [
    '/v1/chat/completions',
    { model: 'b', messages: MESSAGES, audio: {} },
    { 'x-gateway-unsupported': 'drop' },
  ],
  ['/v1/usage?format=csv&limit=1&group_by=model'],
  ['/v1/chat/completions', { model: 'b', messages: MESSAGES }],
  ['/v1/chat/completions', { model: 'b', messages: MESSAGES }],
]

it('a page of another origin can read every header of the gateway', async (t) => {
  const demo = await startDemoModels()
  t.after(demo.close)
  const line = { id: 'l', provider: 'p', protocol: 'anthropic', baseUrl: `${demo.url}/v1`, apiKey: 'any' }
  const models = { a: 'demo-claude', b: 'demo-claude' }
  const gateway = await assembledGateway(t, {
    models: Object.keys(models).map((id) => ({ id, kind: 'chat', price: { perRequest: '0.01' } })),
    lines: [{ ...line, endpoints: ['messages'], models }],
    accounts: [{ id: 'acme', limits: { rpm: 4, tpm: 10_000 } }],
    cors: { origins: [ORIGIN] },
  })
  const sent = new Set<string>()
  let exposed: readonly string[] = []
  for (const [path, body, headers] of REQUESTS) {
    const answer = await gateway.send(path, body, { headers: { origin: ORIGIN, ...headers } })
    await answer.arrayBuffer()
    for (const name of answer.headers.keys()) if (OWN.test(name)) sent.add(name)
    exposed = (answer.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(',')
  }
  for (const name of [
    'x-original-request-id',
    'x-gateway-estimated',
    'x-gateway-dropped',
    'x-next-cursor',
    'retry-after',
  ])
    assert.ok(sent.has(name), name)
  assert.deepEqual(
    [...sent].filter((name) => !exposed.includes(name)),
    [],
  )
  // The address of what a forwarded request has made.
  assert.ok(exposed.includes('location'))
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError, loadConfig } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { ADMIN_BODIES, ownGateway } from './own-gateway.ts'

const { upstream, ask } = await ownGateway()

describe('a body nested a hundred thousand levels deep', () => {
  const DEEP = 100_000
  const arrays = '['.repeat(DEEP) + ']'.repeat(DEEP)
  const objects = `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`
  const chat = (members: string) => `{"model":"chat","max_tokens":5,${members}}`
  const message = (content: string) => chat(`"messages":[{"role":"user","content":${content}}]`)
  const plain = '"messages":[{"role":"user","content":"hi"}]'
  const keyed = { 'idempotency-key': 'deep' }

  for (const [kind, deep] of [
    ['arrays', arrays],
    ['objects', objects],
    ['arrays without an end', '['.repeat(DEEP)],
  ] as const) {
    for (const { path } of OPERATIONS) {
      for (const [where, body] of [
        ['the body', deep],
        ['a message', message(deep)],
        ['a part of a message', message(`[${deep}]`)],
        ['the messages', chat(`"messages":${deep},"input":${deep}`)],
      ] as const) {
        it(`${kind}, as ${where} of ${path}: 400`, async () => {
          const before = upstream.requests.length
          assert.equal(await ask('POST', path, body, keyed), 400)
          assert.equal(upstream.requests.length, before)
        })
      }
    }

    for (const where of ['metadata', 'tools', 'provider', 'response_format', 'brand_new']) {
      it(`${kind}, as "${where}": an answer, and no fault of the gateway`, async () => {
        for (const path of ['/v1/chat/completions', '/v1/messages']) {
          const status = await ask('POST', path, chat(`${plain},"${where}":${deep}`), keyed)
          assert.ok(status === 200 || status === 400, `${path}: ${status}`)
        }
      })
    }
  }

  it('is 400 or 413 of the admin API', async () => {
    const fits = '['.repeat(30_000) + ']'.repeat(30_000)
    for (const [method, path] of ADMIN_BODIES) {
      assert.equal(await ask(method, path, fits), 400)
      assert.equal(await ask(method, path, `{"limits":${fits}}`), 400)
      assert.equal(await ask(method, path, arrays), 413)
    }
  })

  it('is 400 as a provider constraint in a header', async () => {
    const deep = { 'x-gateway-provider': `{"only":${'['.repeat(5000)}${']'.repeat(5000)}}` }
    assert.equal(await ask('POST', '/v1/chat/completions', chat(plain), deep), 400)
  })

  it('is refused as a config file', () => {
    assert.throws(() => loadConfig(JSON.parse(`{"lines":${arrays}}`)), ConfigError)
  })
})

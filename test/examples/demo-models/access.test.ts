import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { DEMO_MODELS } from '../../../examples/gateway/demo-models/models.ts'
import type { DemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { anthropicFor, openaiFor, user, withServer } from './clients.ts'

const BODY_LIMIT = 200_000

let demo: DemoModels
let openai: OpenAI
let anthropic: Anthropic

const cleanUp = cleaningUp()
before(async () => {
  demo = await startDemoModels({ apiKey: 'sk-demo', bodyLimitBytes: BODY_LIMIT })
  cleanUp.after(() => demo.close())
  openai = openaiFor(demo.url)
  anthropic = anthropicFor(demo.url)
})

describe('models', () => {
  it('are listed and found in either shape', async () => {
    const ids = DEMO_MODELS.map(({ id }) => id)
    assert.deepEqual(
      (await openai.models.list()).data.map(({ id }) => id),
      ids,
    )
    assert.deepEqual(
      (await anthropic.models.list()).data.map(({ id }) => id),
      ids,
    )
    assert.equal((await openai.models.retrieve('demo-cut')).object, 'model')
    assert.equal((await anthropic.models.retrieve('demo-cut')).type, 'model')
    await assert.rejects(openai.models.retrieve('gpt-9'), { status: 404 })
  })
})

describe('credentials', () => {
  it('wrong ones are refused in the shape of the provider', async () => {
    const stranger = { openai: openaiFor(demo.url, 'sk-else'), anthropic: anthropicFor(demo.url, 'sk-else') }
    await assert.rejects(stranger.openai.models.list(), { status: 401, code: 'invalid_api_key' })
    await assert.rejects(
      stranger.anthropic.messages.create({ model: 'demo-claude', max_tokens: 9, messages: user('Hi') }),
      { status: 401, type: 'authentication_error' },
    )
  })

  it('none at all are refused even where any key will do', async () => {
    await withServer({}, async ({ url }) => {
      assert.equal((await fetch(`${url}/v1/models`)).status, 401)
      assert.equal((await openaiFor(url, 'anything').models.list()).data.length, DEMO_MODELS.length)
    })
  })

  it('a second, wrong one beside the right one is refused', async () => {
    const headers = { authorization: 'Bearer sk-demo', 'x-api-key': 'sk-of-a-caller' }
    assert.equal((await fetch(`${demo.url}/v1/models`, { headers })).status, 401)
  })
})

describe('bad bodies', () => {
  const post = async (path: string, body: string) => {
    const headers = { 'x-api-key': 'sk-demo', 'anthropic-version': '2023-06-01' }
    const response = await fetch(demo.url + path, { method: 'POST', headers, body })
    return {
      status: response.status,
      body: (await response.json()) as { type?: string; error: { type: string } },
    }
  }

  for (const [what, body, status] of [
    ['broken JSON', '{"model":', 400],
    ['a list', '[]', 400],
    ['a body over the limit', JSON.stringify('x'.repeat(BODY_LIMIT * 20)), 413],
  ] as const) {
    it(`${what} is refused with ${status} in each provider's shape`, async () => {
      const openaiStyle = await post('/v1/chat/completions', body)
      assert.equal(openaiStyle.status, status)
      assert.equal(openaiStyle.body.error.type, 'invalid_request_error')
      const anthropicStyle = await post('/v1/messages', body)
      assert.equal(anthropicStyle.status, status)
      assert.equal(anthropicStyle.body.type, 'error')
      assert.equal(
        anthropicStyle.body.error.type,
        status === 413 ? 'request_too_large' : 'invalid_request_error',
      )
    })
  }

  it('an unknown path is a 404', async () => {
    assert.equal((await post('/v1/nothing', '{}')).status, 404)
  })
})

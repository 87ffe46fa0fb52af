import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { chatBody, messageBody } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

const BODIES: Readonly<Record<string, Record<string, unknown>>> = {
  '/v1/chat/completions': chatBody(),
  '/v1/completions': { model: 'chat', prompt: 'hi' },
  '/v1/messages': messageBody(),
  '/v1/messages/count_tokens': messageBody(),
  '/v1/responses': { model: 'chat', input: 'hi' },
  '/v1/embeddings': { model: 'vectors', input: 'hi' },
  '/v1/images/generations': { model: 'pictures', prompt: 'a cat' },
  '/v1/rerank': { model: 'ranks', query: 'q', documents: ['d'] },
}

/** Names that some upstream takes for the same. */
function variantsOf(name: string): string[] {
  const camel = name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  const kelvin = name.replace('k', '\u212a').replace('s', '\u017f')
  const all = [
    name.toUpperCase(),
    name[0]?.toUpperCase() + name.slice(1),
    name.slice(0, -1) + name.at(-1)?.toUpperCase(),
    camel,
    name.replaceAll('_', '-'),
    name.replaceAll('_', ''),
    kelvin,
  ]
  return [...new Set(all)].filter((variant) => variant !== name)
}

describe('a member whose name differs from a judged one in case or separators only', async () => {
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: {
      models: [
        { id: 'chat', kind: 'chat' },
        { id: 'vectors', kind: 'embedding' },
        { id: 'pictures', kind: 'image' },
        { id: 'ranks', kind: 'rerank' },
      ],
    },
  }))

  async function refusedParam(path: string, body: object): Promise<void> {
    const before = upstream.requests.length
    const response = await gateway.post(path, body)
    assert.equal(response.status, 400, `${path} ${JSON.stringify(body)}`)
    const { code, type, message } = await refusalOf(response)
    assert.equal(code ?? type, code ? 'invalid_request' : 'invalid_request_error')
    assert.match(message, /differs from one that is only in case/)
    assert.equal(upstream.requests.length, before)
  }

  for (const { path, schema } of OPERATIONS) {
    const body = BODIES[path]
    if (!body) continue
    const { shape } = schema as unknown as { shape: object }
    for (const name of Object.keys(shape)) {
      it(`${path}: any variant of "${name}" is refused, beside it and in place of it`, async () => {
        for (const variant of variantsOf(name)) {
          await refusedParam(path, { ...body, [variant]: body[name] ?? null })
          const { [name]: value = null, ...others } = body
          await refusedParam(path, { [variant]: value, ...others })
        }
      })
    }
  }

  it('in what is judged inside of members, too, and the param says where', async () => {
    for (const [body, param] of [
      [chatBody({ stream: true, stream_options: { Include_Usage: true } }), 'stream_options.Include_Usage'],
      [chatBody({ messages: [{ role: 'user', content: 'hi', Content: 'more' }] }), 'messages[0].Content'],
      [
        chatBody({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a', TEXT: 'b' }] }] }),
        'messages[0].content[0].TEXT',
      ],
      [chatBody({ response_format: { type: 'text', Type: 'json_schema' } }), 'response_format.Type'],
      [chatBody({ tools: [{ type: 'function', tYpe: 'x', function: { name: 'f' } }] }), 'tools[0].tYpe'],
    ] as const) {
      const response = await gateway.post('/v1/chat/completions', body)
      assert.equal((await refusalOf(response)).param, param)
    }
  })

  it('other unknown members pass, whatever their case', async () => {
    const response = await gateway.post(
      '/v1/chat/completions',
      chatBody({ Seed: 1, topK: 2, modelVersion: 3, models: null, _: 4, '': 5, ['x'.repeat(100_000)]: 6 }),
    )
    assert.equal(response.status, 200)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { bodyFault } from '../../../../lib/core/operations/body/body-schema.ts'
import { FormFile, OPERATIONS } from '../../../../lib/core/operations/index.ts'
import { textOrTokens } from '../../../../lib/core/operations/metering/text-or-tokens.ts'

type Json = Record<string, unknown>

const user = { role: 'user', content: 'Hi' }
const FILE = new FormFile('a.png', 'image/png', Buffer.of(1))
const SOUND: Record<string, Json> = {
  '/v1/chat/completions': { model: 'm', messages: [user] },
  '/v1/completions': { model: 'm', prompt: 'Hi' },
  '/v1/messages': { model: 'm', max_tokens: 1, messages: [user] },
  '/v1/messages/count_tokens': { model: 'm', messages: [user] },
  '/v1/responses': { model: 'm', input: 'Hi' },
  '/v1/responses/compact': { model: 'm', input: 'Hi' },
  '/v1/responses/input_tokens': { model: 'm', input: 'Hi' },
  '/v1/embeddings': { model: 'm', input: 'Hi' },
  '/v1/rerank': { model: 'm', query: 'q', documents: ['a'] },
  '/v1/images/generations': { model: 'm', prompt: 'A cat' },
  '/v1/images/edits': { model: 'm', prompt: 'A hat', image: FILE },
}
const ID = 'x'.repeat(1024)

/** Of each endpoint: a member, values that fit, values that do not. */
const ROWS: Record<string, [member: string, fit: unknown[], unfit: unknown[]][]> = {
  '/v1/chat/completions': [
    [
      'messages',
      [[user]],
      [[], undefined, null, 'Hi', [{ content: 'Hi' }], [{ role: 'queen', content: 'Hi' }]],
    ],
    ['n', [1, 128, null], [0, 129, 1.5, '1']],
    ['max_tokens', [1, null], [0, 1.5]],
    ['max_completion_tokens', [1, null], [0, 1.5]],
    ['temperature', [0, 2, null], [-0.1, 2.1]],
    ['top_p', [0, 1, null], [-0.1, 1.1]],
    ['stream', [true, false, null], ['true', 1]],
    ['stream_options', [{ include_usage: true }, {}, null], [{ include_usage: 1 }, true]],
    [
      'tools',
      [
        [{ type: 'function', function: { name: 'f' } }, { name: 'f', input_schema: {} }, { type: 'own' }],
        [],
        null,
      ],
      [[{}], [{ input_schema: 1 }], [{ input_schema: {} }], [{ type: 'function' }], {}],
    ],
    ['functions', [[{ name: 'f' }], [], null], [[{}], {}]],
    ['response_format', [{ type: 'text' }, null], [{}, 'json']],
    ['reasoning_effort', ['low', null], [1]],
    ['provider', [{}, null], [{ unknown: 1 }, 'x']],
  ],
  '/v1/completions': [
    ['n', [1, 128, null], [0, 129]],
    ['best_of', [1, 128, null], [0, 129]],
    ['max_tokens', [0, 1, null], [-1, 1.5]],
    ['temperature', [0, 2, null], [-0.1, 2.1]],
    ['top_p', [0, 1, null], [-0.1, 1.1]],
    ['suffix', ['', 'end', null], [1]],
    ['stream', [true, null], ['true']],
    ['stream_options', [{ include_usage: false }, {}, null], [{ include_usage: 1 }]],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
  '/v1/messages': [
    ['max_tokens', [0, 1], [-1, undefined, null, 1.5]],
    [
      'messages',
      [[user, { role: 'system', content: 'a' }]],
      [[], [{ role: 'tool', content: 'a' }], [{ role: 'user' }]],
    ],
    ['system', ['', 'a', [{ type: 'text', text: 'a' }], null], [[{}], 1]],
    ['temperature', [0, 1, null], [-0.1, 1.1]],
    ['top_p', [0, 1, null], [-0.1, 1.1]],
    ['stream', [true, null], ['true']],
    ['tools', [[{ name: 'f', input_schema: {} }, { type: 'own' }], null], [[1], [{}], {}]],
    ['thinking', [{ type: 'disabled' }, null], [{}, 'on']],
    ['output_config', [{ format: { type: 'own' } }, { format: null }, {}, null], [{ format: {} }]],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
  '/v1/messages/count_tokens': [['max_tokens', [0, undefined, null], [-1]]],
  '/v1/responses': [
    ['input', ['Hi', [user], []], [7, undefined, null, [7]]],
    ['instructions', ['a', [user], null], [7]],
    ['previous_response_id', ['r', ID, null], ['', `${ID}x`]],
    ['stream', [true, null], ['true']],
    ['store', [false, null], ['true']],
    ['background', [false, null], ['true']],
    ['max_output_tokens', [1, null], [0, 1.5]],
    ['temperature', [0, 2, null], [-0.1, 2.1]],
    ['top_p', [0, 1, null], [-0.1, 1.1]],
    ['tools', [[{ type: 'a' }], null], [[{}]]],
    ['truncation', ['auto', null], [1]],
    ['text', [{ format: { type: 'text' } }, { format: null }, {}, null], [{ format: {} }]],
    ['reasoning', [{ effort: 'low', summary: null }, {}, null], [{ effort: 1 }, { summary: 1 }]],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
  '/v1/embeddings': [
    ['dimensions', [256, null], ['256', 1.5, {}]],
    ['encoding_format', ['base64', null], [7, {}]],
    ['user', ['u', null], [7, {}]],
    ['stream', [false, null], ['true']],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
  '/v1/rerank': [
    ['query', ['q'], ['', undefined, 1]],
    ['documents', [['a', {}]], [[], [1], [null], [['a']], 'a', undefined]],
    ['top_n', [1, null], [0, 1.5]],
    ['stream', [false, null], ['true']],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
  '/v1/images/generations': [
    ['prompt', ['p'], ['', undefined]],
    ['size', ['1024x1024', null], [1024, {}]],
    ['response_format', ['url', null], [{}, 7]],
    ['n', [1, 128, null], [0, 129]],
    ['stream', [false, null], ['true']],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
  '/v1/images/edits': [
    ['prompt', ['p'], ['', undefined]],
    [
      'image',
      [{ image_url: 'https://a.test/b.png' }, [FILE, FILE]],
      ['a.png', [], ['a.png'], null, undefined],
    ],
    ['images', [[{ file_id: 'file-1' }], null], [[], 'a.png', [7]]],
    ['mask', [FILE, { image_url: 'https://a.test/b.png' }, null], ['a.png', [FILE, 'a.png']]],
    [
      'n',
      [1, 128, '1', '9', '10', '99', '100', '119', '128', null],
      [0, 129, '0', '01', '129', '200', '', '1.5', ['1']],
    ],
    ['stream', [true, false, 'true', 'false', null], ['True', '1', 1, '']],
    ['provider', [{}, null], [{ unknown: 1 }]],
  ],
}

for (const { path, schema } of OPERATIONS) {
  const sound = SOUND[path] ?? {}
  const accepts = (members: Json) => !bodyFault(schema, { ...sound, ...members })

  describe(`the body of ${path}`, () => {
    it('names a model, and may have unknown members', () => {
      assert.equal(accepts({ further: [1] }), true)
      for (const model of ['', undefined, null, 7]) assert.equal(accepts({ model }), false)
    })

    for (const [member, fit, unfit] of ROWS[path] ?? []) {
      it(`has a ${member} within its bounds`, () => {
        for (const value of fit) assert.equal(accepts({ [member]: value }), true, JSON.stringify(value))
        for (const value of unfit) assert.equal(accepts({ [member]: value }), false, JSON.stringify(value))
      })
    }
  })
}

describe('texts, or tokens in their place,', () => {
  const faults = (given: unknown) =>
    (textOrTokens.safeParse(given).error?.issues ?? []).map(({ message, path }) => [path.join('.'), message])

  it('are a text, tokens, or a list of either', () => {
    for (const given of ['', 'a', ['a', ''], [0, 1, Number.MAX_SAFE_INTEGER], [[0], [1, 2]]])
      assert.deepEqual(faults(given), [], JSON.stringify(given))
  })

  it('have no other form, and the first fault is reported with its place', () => {
    const token = 'must be a token: a whole number from 0 up'
    const rows: [given: unknown, place: string, message: string][] = [
      [7, '', 'must be a string, a list of strings, a list of tokens, or a list of such lists'],
      [{}, '', 'must be a string, a list of strings, a list of tokens, or a list of such lists'],
      [[], '', 'must not be empty'],
      [['a', 1, null], '1', 'must be a string'],
      [[1, 'a'], '1', token],
      [[-1], '0', token],
      [[0.5], '0', token],
      [[1, 2 ** 53], '1', token],
      [[[1], []], '1', 'must be a list of tokens'],
      [[[1], 'a'], '1', 'must be a list of tokens'],
      [[null], '0', 'must be a list of tokens'],
      [[[1], [2, -1]], '1.1', token],
    ]
    for (const [given, place, message] of rows)
      assert.deepEqual(faults(given), [[place, message]], JSON.stringify(given))
  })

  it('are declared in the schema of an endpoint', () => {
    const { anyOf } = z.toJSONSchema(textOrTokens, { io: 'input', unrepresentable: 'any' })
    const tokens = { type: 'array', items: { type: 'integer', minimum: 0 } }
    assert.deepEqual(anyOf, [
      { type: 'string' },
      { type: 'array', items: { type: 'string' } },
      tokens,
      { type: 'array', items: tokens },
    ])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import { providerConstraintSchema } from '../../../lib/core/operations/body/provider-constraint.ts'
import { endpointOf } from '../../../lib/core/operations/by-path.ts'
import {
  ENDPOINT_BY_KIND,
  FormFile,
  OPERATIONS,
  type Operation,
  remixOf,
  servesNatively,
  storedResponses,
  videos,
  videoTasks,
} from '../../../lib/core/operations/index.ts'

const remix = remixOf({ id: 'video_1', model: 'film', seconds: 8 })

/** The names by which logs, lines and prices know an endpoint. */
const KNOWN: Record<string, [path: string, endpoint: string, kind: string, unit: string, protocol: string]> =
  {
    'chat.completions': ['/v1/chat/completions', 'chat/completions', 'chat', 'tokens', 'openai'],
    completions: ['/v1/completions', 'completions', 'chat', 'tokens', 'openai'],
    responses: ['/v1/responses', 'responses', 'chat', 'tokens', 'openai'],
    'responses.input_tokens': [
      '/v1/responses/input_tokens',
      'responses/input_tokens',
      'chat',
      'none',
      'openai',
    ],
    'responses.compact': ['/v1/responses/compact', 'responses/compact', 'chat', 'tokens', 'openai'],
    'responses.stored': ['/v1/responses/:id', 'responses', 'chat', 'none', 'openai'],
    embeddings: ['/v1/embeddings', 'embeddings', 'embedding', 'input', 'openai'],
    'images.generations': ['/v1/images/generations', 'images/generations', 'image', 'images', 'openai'],
    'images.edits': ['/v1/images/edits', 'images/edits', 'image', 'images', 'openai'],
    rerank: ['/v1/rerank', 'rerank', 'rerank', 'searches', 'openai'],
    messages: ['/v1/messages', 'messages', 'chat', 'tokens', 'anthropic'],
    'messages.count_tokens': [
      '/v1/messages/count_tokens',
      'messages/count_tokens',
      'chat',
      'none',
      'anthropic',
    ],
    videos: ['/v1/videos', 'videos', 'video', 'seconds', 'openai'],
    'videos.remix': ['/v1/videos/video_1/remix', 'videos', 'video', 'seconds', 'openai'],
    'contents.generations.tasks': [
      '/api/v3/contents/generations/tasks',
      'contents/generations/tasks',
      'video',
      'seconds',
      'ark',
    ],
  }
const ALL: readonly Operation[] = [...OPERATIONS, storedResponses, videos, remix, videoTasks]

describe('an endpoint', () => {
  it('has a name, and is in the list of all endpoints', () => {
    assert.deepEqual(ALL.map(({ name }) => name).sort(), Object.keys(KNOWN).sort())
  })

  for (const operation of ALL)
    it(`has a path and a price: ${operation.name}`, () => {
      const { path, kind, priceUnit, protocol } = operation
      assert.deepEqual([path, endpointOf(operation), kind, priceUnit, protocol], KNOWN[operation.name])
    })

  it('is requested at the address of a line, by the same path', () => {
    for (const { name, path, upstreamPath } of ALL)
      if (name !== 'responses.stored')
        assert.ok(path.endsWith(upstreamPath) && upstreamPath.startsWith('/'), name)
    assert.equal(remix.upstreamPath, '/videos/video_1/remix')
    assert.equal(videoTasks.upstreamPath, '/contents/generations/tasks')
  })

  it('exists for every kind of model, so that an error can name it', () => {
    for (const [kind, endpoint] of Object.entries(ENDPOINT_BY_KIND))
      assert.ok(
        ALL.some((one) => one.kind === kind && endpoint === `POST ${one.path}`),
        endpoint,
      )
    const kinds = new Set(ALL.map(({ kind }) => kind as string))
    assert.deepEqual(Object.keys(ENDPOINT_BY_KIND).sort(), [...kinds].sort())
  })

  it('accepts forms, is streamed, or returns data, as upstreams do', () => {
    const named = (has: (operation: Operation) => unknown) => ALL.filter(has).map(({ name }) => name)
    assert.deepEqual(
      named(({ acceptsForms }) => acceptsForms),
      ['images.edits', 'videos', 'videos.remix'],
    )
    assert.deepEqual(
      named(({ answersData }) => answersData),
      ['embeddings', 'images.generations', 'images.edits'],
    )
    const ends: [name: string, terminator: string][] = ALL.flatMap(({ name, streamTerminator: end }) =>
      end === undefined || name === 'responses.stored' ? [] : [[name, end]],
    )
    assert.deepEqual(ends, [
      ['chat.completions', 'data: [DONE]\n\n'],
      ['completions', 'data: [DONE]\n\n'],
      ['responses', ''],
      ['images.generations', ''],
      ['images.edits', ''],
      ['messages', 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    ])
  })

  it('is answered by the gateway if only the input is counted', () => {
    const answers = ALL.flatMap(({ name, estimatedAnswer }) =>
      estimatedAnswer ? [[name, estimatedAnswer(7)]] : [],
    )
    assert.deepEqual(answers, [
      ['responses.input_tokens', { object: 'response.input_tokens', input_tokens: 7 }],
      ['messages.count_tokens', { input_tokens: 7 }],
    ])
  })

  for (const { name, upstreamBody } of ALL)
    it(`is sent to a line with its name for the model, and no members of the gateway: ${name}`, () => {
      const raw = Buffer.from('{"model":"m","provider":{},"x":1.0}')
      const sent = upstreamBody(raw, JSON.parse(raw.toString()), { model: 'other' })
      assert.equal(sent.toString(), '{"model":"other","x":1.0}')
    })
})

describe('a line that serves an endpoint without translation', () => {
  const chat = OPERATIONS[0] ?? assert.fail()

  it('has its protocol, and the endpoint if it lists some', () => {
    assert.equal(servesNatively({ protocol: 'openai' }, chat), true)
    assert.equal(servesNatively({ protocol: 'anthropic' }, chat), false)
    const of = (...endpoints: string[]) =>
      servesNatively({ protocol: 'openai', endpoints: new Set(endpoints) as never }, chat)
    assert.deepEqual([of(), of('completions'), of('rerank', 'chat/completions')], [false, false, true])
  })
})

describe('the count of images to be made or edited', () => {
  const factsOf = (path: string, json: Record<string, unknown>) => {
    const { facts } = OPERATIONS.find((one) => one.path === path) ?? assert.fail()
    return facts({ model: 'm', prompt: 'A cat', ...json }, Buffer.alloc(0), ({ length }) => length)
  }
  const edit = (json: Record<string, unknown>) => factsOf('/v1/images/edits', json)
  const file = new FormFile('a.png', 'image/png', Buffer.of(1))

  it('is the maximum of a series, 15 by default', () => {
    const most = (json: Record<string, unknown>) => {
      const { answers, units } = factsOf('/v1/images/generations', { n: 2, ...json })
      assert.equal(answers, units)
      return units
    }
    const auto = { sequential_image_generation: 'auto' }
    assert.equal(most({}), 2)
    assert.equal(most({ sequential_image_generation: 'disabled' }), 2)
    assert.equal(most(auto), 15)
    assert.equal(most({ ...auto, sequential_image_generation_options: { max_images: 4 } }), 4)
    for (const options of [null, {}, { max_images: null }])
      assert.equal(most({ ...auto, sequential_image_generation_options: options }), 15)
    assert.equal(most({ sequential_image_generation_options: { max_images: 4 } }), 2)
  })

  it('includes all given pictures, more for a high level of detail', () => {
    const counted = (json: Record<string, unknown>) => {
      const { images, estimatedInputTokens, windowTokens } = edit(json)
      assert.equal(windowTokens, 5)
      return [images, estimatedInputTokens - 5]
    }
    assert.deepEqual(counted({ image: file }), [1, 1200])
    assert.deepEqual(counted({ images: [file, {}], mask: file }), [3, 3600])
    assert.deepEqual(counted({ image: [file, file], images: {}, mask: null }), [3, 3600])
    assert.deepEqual(counted({ image: file, input_fidelity: 'high' }), [1, 1200 + 6240])
    assert.deepEqual(counted({ image: file, input_fidelity: 'low' }), [1, 1200])
  })

  it('is the requested number, in a form or in JSON', () => {
    const asked = (json: Record<string, unknown>) => {
      const { units, answers, stream, model, messages, tools, maxOutputTokens } = edit({
        image: file,
        ...json,
      })
      assert.deepEqual([model, messages, tools, maxOutputTokens, answers], ['m', 0, 0, undefined, units])
      return [units, stream]
    }
    assert.deepEqual(asked({}), [1, false])
    assert.deepEqual(asked({ n: 3, stream: true }), [3, true])
    assert.deepEqual(asked({ n: '4', stream: 'true' }), [4, true])
    assert.deepEqual(asked({ n: null, stream: 'false' }), [1, false])
    assert.deepEqual([...edit({ image: file, stream: 'true' }).featureParams], [['stream', 'stream']])
  })
})

const LONG = 'x'.repeat(3000)
const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }))
const picture = { type: 'image_url', image_url: { url: 'https://a.test/b.png' } }

function prefixOf(path: string, json: Record<string, unknown>): string {
  const operation = OPERATIONS.find((one) => one.path === path)
  assert.ok(operation, path)
  return operation.promptPrefix(json)
}

describe('the beginning of a prompt, which requests with the same cached prompt have in common', () => {
  const chat = (...messages: object[]) => prefixOf('/v1/chat/completions', { messages })

  it('contains the role and the text of each message of a chat', () => {
    assert.equal(
      chat({ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi' }),
      'system:Be brief.\nuser:Hi\n',
    )
  })

  it('contains the texts of a chat’s parts in order, without other parts', () => {
    assert.equal(chat({ role: 'user', content: [...parts('Look', ' here'), picture] }), 'user:Look here\n')
    assert.equal(
      chat({ role: 'assistant', content: null }, { role: 'user', content: 'Hi' }),
      'assistant:\nuser:Hi\n',
    )
  })

  it('is the same for a text and for the same text as a part', () => {
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const of = (content: unknown) => prefixOf(path, { messages: [{ role: 'user', content }] })
      assert.equal(of('Look'), of(parts('Look')), path)
      assert.notEqual(of('Look'), of('Book'), path)
    }
  })

  it('has the instructions first', () => {
    const messages = [{ role: 'user', content: 'Hi' }]
    const said = prefixOf('/v1/messages', { system: 'Be brief.', messages })
    assert.ok(said.startsWith('Be brief.') && said.includes('Hi'), said)
    assert.equal(prefixOf('/v1/messages', { system: parts('Be brief.'), messages }), said)
    const response = prefixOf('/v1/responses', { instructions: 'Be brief.', input: 'Hi' })
    assert.ok(response.startsWith('Be brief.') && response.includes('Hi'), response)
  })

  it('contains the role and the text of each item of a response', () => {
    const input = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: parts('Ho', '!') },
      { type: 'function_call' },
    ]
    assert.equal(prefixOf('/v1/responses', { input }), 'user:Hi\nassistant:Ho!\n:\n')
    assert.equal(prefixOf('/v1/responses', { instructions: input.slice(0, 1), input: 'So' }), 'user:Hi\nSo\n')
    assert.equal(prefixOf('/v1/responses', { instructions: null, input: null }), '')
  })

  it('contains the first text, or the first tokens, of an input that is read as it is', () => {
    const of = (input: unknown) => prefixOf('/v1/embeddings', { input })
    const many = Array.from({ length: 300 }, (_, i) => i)
    assert.deepEqual([of('one'), of(['one', 'two']), of([1, 2, 3])], ['one', 'one', '1 2 3'])
    assert.deepEqual([of([[1, 2], [3]]), of(many)], ['1 2', many.slice(0, 256).join(' ')])
  })

  it('has 1024 characters at most', () => {
    const bodies: Record<string, Record<string, unknown>> = {
      '/v1/chat/completions': { messages: [{ role: 'user', content: LONG }] },
      '/v1/completions': { prompt: LONG },
      '/v1/messages': { system: LONG, messages: [{ role: 'user', content: LONG }] },
      '/v1/responses': { instructions: LONG, input: LONG },
      '/v1/embeddings': { input: LONG },
      '/v1/rerank': { query: LONG },
      '/v1/images/generations': { prompt: LONG },
      '/v1/images/edits': { prompt: LONG },
    }
    for (const [path, json] of Object.entries(bodies)) assert.equal(prefixOf(path, json).length, 1024, path)
  })
})

type Json = Record<string, unknown>

const said = (content: unknown) => ({ role: 'user', content })
const part = (members: Json) => [{ type: 'text', text: 'a', ...members }]
/** Parts of which each has its own fault. */
const ODD_PARTS = [
  ...[[{}], ['text'], [null], part({ type: 7 }), part({ type: null }), {}],
  ...[part({ text: 7 }), part({ text: null }), [{ type: 'text' }]],
]
const SOUND_PARTS = [[], part({}), [{ type: 'other', x: 1, text: null }], 'a', '']

/** Of each endpoint: how a value gets into its body, values that fit, values that do not. */
const ROWS: [
  path: string,
  what: string,
  build: (value: unknown) => Json,
  fit: unknown[],
  unfit: unknown[],
][] = [
  [
    '/v1/chat/completions',
    'a role',
    (role) => ({ messages: [{ role, content: 'a', name: 'f', tool_call_id: 'c' }] }),
    ['developer', 'system', 'user', 'assistant', 'tool', 'function'],
    ['', 'User', null, undefined],
  ],
  [
    '/v1/chat/completions',
    'content',
    (content) => ({ messages: [said(content)] }),
    [
      ...SOUND_PARTS,
      ...[part({ image_url: { url: '' } }), part({ image_url: 'u' }), part({ image_url: null })],
    ],
    [
      ...[...ODD_PARTS, null, undefined],
      ...[part({ image_url: {} }), part({ image_url: 7 }), part({ image_url: { url: 7 } })],
    ],
  ],
  [
    '/v1/chat/completions',
    'calls',
    (tool_calls) => ({ messages: [{ role: 'assistant', tool_calls }] }),
    [[], [{ id: 'c', type: 'function', function: { name: 'f' } }], null, undefined],
    [{}, [{}], ['x'], [null], 'x'],
  ],
  [
    '/v1/messages',
    'a role',
    (role) => ({ max_tokens: 1, messages: [{ role, content: 'a' }] }),
    ['user', 'assistant', 'system'],
    ['', 'tool', 'developer', null, undefined],
  ],
  [
    '/v1/messages',
    'content',
    (content) => ({ max_tokens: 1, messages: [said(content)] }),
    SOUND_PARTS,
    [...ODD_PARTS, null, undefined],
  ],
  [
    '/v1/responses',
    'a role',
    (role) => ({ input: [{ role, content: 'a' }] }),
    ['user', 'assistant', 'system', 'developer'],
    ['', 'tool', null, undefined],
  ],
  [
    '/v1/responses',
    'content',
    (content) => ({ input: [said(content)] }),
    SOUND_PARTS,
    [...ODD_PARTS, null, undefined],
  ],
  [
    '/v1/responses',
    'a type',
    (type) => ({ input: [{ type, role: 'user', content: 'a' }] }),
    ['', 'message', null, undefined],
    [7, {}],
  ],
  [
    '/v1/images/generations',
    'a series',
    (max_images) => ({ prompt: 'a', sequential_image_generation_options: { max_images } }),
    [1, 128, null, undefined],
    [0, 129, 1.5, '1'],
  ],
  [
    '/v1/images/generations',
    'the kind of a series',
    (sequential_image_generation) => ({ prompt: 'a', sequential_image_generation }),
    ['auto', 'disabled', '', null],
    [7, {}],
  ],
]

describe('a part of a body', () => {
  for (const [path, what, build, fit, unfit] of ROWS)
    it(`is checked: ${what} of ${path}`, () => {
      const { schema } = OPERATIONS.find((one) => one.path === path) ?? assert.fail()
      const accepts = (value: unknown) => !bodyFault(schema, { model: 'm', ...build(value) })
      for (const value of fit) assert.equal(accepts(value), true, JSON.stringify(value))
      for (const value of unfit) assert.equal(accepts(value), false, JSON.stringify(value))
    })

  it('may be a single character', () => {
    assert.equal(remixOf({ id: 'v', model: 'm', seconds: 1 }).schema.safeParse({ prompt: 'r' }).success, true)
    const image = { type: 'image_url', image_url: { url: 'u' } }
    assert.equal(videoTasks.schema.safeParse({ model: 'm', content: [image] }).success, true)
    assert.equal(
      videos.schema.safeParse({ model: 'm', prompt: 'p', input_reference: { image_url: 'u' } }).success,
      true,
    )
    assert.equal(providerConstraintSchema.safeParse({ region: 'e' }).success, true)
  })

  it('of a video task is checked', () => {
    const accepts = (members: Json) =>
      !bodyFault(videoTasks.schema, { model: 'm', content: [{ type: 'text', text: 'a' }], ...members })
    const fit = [
      { content: [{ type: 'text', text: 'a', role: null, image_url: null }] },
      { content: [{ type: 'image_url', image_url: { url: 'u' }, role: 'first_frame' }] },
      { resolution: '720p', ratio: '16:9', seed: -1, provider: {} },
      { resolution: null, ratio: null, seed: null, duration: null, frames: null, provider: null },
    ]
    for (const members of fit) assert.equal(accepts(members), true, JSON.stringify(members))
    const unfit = [
      { content: [{}] },
      { content: [{ type: 'text', text: null }] },
      { content: [{ type: 'text', text: 7 }] },
      { content: [{ type: 'text', role: 7 }] },
      { content: [{ type: 'image_url', image_url: {} }] },
      { content: 'a' },
      { resolution: 720 },
      { ratio: 1 },
      { provider: { unknown: 1 } },
    ]
    for (const members of unfit) assert.equal(accepts(members), false, JSON.stringify(members))
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ENDPOINT_BY_KIND,
  endpointOf,
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

/** What logs, lines and prices know an endpoint by. */
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
  it('has a name, and is among all', () => {
    assert.deepEqual(ALL.map(({ name }) => name).sort(), Object.keys(KNOWN).sort())
  })

  for (const operation of ALL)
    it(`is known by where it stands and what it costs: ${operation.name}`, () => {
      const { path, kind, priceUnit, protocol } = operation
      assert.deepEqual([path, endpointOf(operation), kind, priceUnit, protocol], KNOWN[operation.name])
    })

  it('is asked for behind the address of a line, by the same path', () => {
    for (const { name, path, upstreamPath } of ALL)
      if (name !== 'responses.stored')
        assert.ok(path.endsWith(upstreamPath) && upstreamPath.startsWith('/'), name)
    assert.equal(remix.upstreamPath, '/videos/video_1/remix')
    assert.equal(videoTasks.upstreamPath, '/contents/generations/tasks')
  })

  it('is named where a model is of another kind', () => {
    for (const [kind, endpoint] of Object.entries(ENDPOINT_BY_KIND))
      assert.ok(
        ALL.some((one) => one.kind === kind && endpoint === `POST ${one.path}`),
        endpoint,
      )
    const kinds = new Set(ALL.map(({ kind }) => kind as string))
    assert.deepEqual(Object.keys(ENDPOINT_BY_KIND).sort(), [...kinds].sort())
  })

  it('takes forms, is streamed, or is answered with data, as upstreams do it', () => {
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

  it('is answered by the gateway where only the input is counted', () => {
    const answers = ALL.flatMap(({ name, estimatedAnswer }) =>
      estimatedAnswer ? [[name, estimatedAnswer(7)]] : [],
    )
    assert.deepEqual(answers, [
      ['responses.input_tokens', { object: 'response.input_tokens', input_tokens: 7 }],
      ['messages.count_tokens', { input_tokens: 7 }],
    ])
  })

  for (const { name, upstreamBody } of ALL)
    it(`goes to a line with its name of the model, and nothing that is the gateway’s: ${name}`, () => {
      const raw = Buffer.from('{"model":"m","provider":{},"x":1.0}')
      const sent = upstreamBody(raw, JSON.parse(raw.toString()), { model: 'other' })
      assert.equal(sent.toString(), '{"model":"other","x":1.0}')
    })
})

describe('a line that serves an endpoint as it is', () => {
  const chat = OPERATIONS[0] ?? assert.fail()

  it('has its protocol, and the endpoint if it names some', () => {
    assert.equal(servesNatively({ protocol: 'openai' }, chat), true)
    assert.equal(servesNatively({ protocol: 'anthropic' }, chat), false)
    const of = (...endpoints: string[]) =>
      servesNatively({ protocol: 'openai', endpoints: new Set(endpoints) as never }, chat)
    assert.deepEqual([of(), of('completions'), of('rerank', 'chat/completions')], [false, false, true])
  })
})

describe('what is counted of images to be made or edited', () => {
  const factsOf = (path: string, json: Record<string, unknown>) => {
    const { facts } = OPERATIONS.find((one) => one.path === path) ?? assert.fail()
    return facts({ model: 'm', prompt: 'A cat', ...json }, Buffer.alloc(0), ({ length }) => length)
  }
  const edit = (json: Record<string, unknown>) => factsOf('/v1/images/edits', json)
  const file = new FormFile('a.png', 'image/png', Buffer.of(1))

  it('is a series of as many as it may have, 15 where it does not say', () => {
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

  it('are all pictures that are given, more where they are looked at closely', () => {
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

  it('are as many as are asked for, in a form or in JSON', () => {
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

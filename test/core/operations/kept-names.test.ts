import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  chatCompletions,
  messages,
  type Operation,
  responses,
  type StreamReader,
} from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const pairs = (kept: StreamReader['kept']) => kept?.map(({ kind, id }) => `${kind} ${id}`)

/** The resources that a stream has kept, with all its events. */
function keptOf({ streamReader }: Operation, events: Json[], json: Json = {}) {
  const reader = streamReader?.({ json, answers: 1 }) ?? assert.fail()
  for (const event of events) reader.read({ event: undefined, data: JSON.stringify(event) })
  return pairs(reader.kept)
}

describe('the resources that an upstream keeps of a chat', () => {
  it('are its spoken answers, by their ids', () => {
    const choices = [
      { message: { audio: { id: 'audio_1' } } },
      { message: { content: 'Hi' } },
      { message: { audio: { id: 7 } } },
      { message: { audio: 'audio_3' } },
      { message: { audio: { id: 'audio_2' } } },
      null,
    ]
    assert.deepEqual(pairs(chatCompletions.readAnswer({ choices }).kept), ['audio audio_1', 'audio audio_2'])
    assert.deepEqual(pairs(chatCompletions.readAnswer({ choices: [] }).kept), [])
  })

  it('are read from a stream at the first event with sound', () => {
    const chunk = (delta: Json) => ({ choices: [{ index: 0, delta }] })
    assert.equal(keptOf(chatCompletions, [chunk({ content: 'Hi' })]), undefined)
    const spoken = [chunk({ audio: { id: 'audio_1', data: '' } }), chunk({ audio: { id: 'audio_2' } })]
    assert.deepEqual(keptOf(chatCompletions, spoken), ['audio audio_1'])
  })
})

describe('the resources that an upstream keeps of a message', () => {
  const file = (type: unknown, content: unknown) => ({ type, content })
  const made = (...ids: unknown[]) => ({ type: 'result', content: ids.map((file_id) => ({ file_id })) })
  const container = { id: 'container_1', expires_at: 'x' }

  const blocks: [what: string, block: Json, kept: string[]][] = [
    ['files of a tool', file('bash_code_execution_tool_result', made('f1', 7, 'f2')), ['file f1', 'file f2']],
    ['no file', file('code_execution_tool_result', { content: 'x' }), []],
    ['a result of no object', file('code_execution_tool_result', [made('f1')]), []],
    ['another block', file('text', made('f1')), []],
    ['a block of the caller', file('tool_result', made('f1')), []],
    ['a block without a type', file(7, made('f1')), []],
  ]
  for (const [what, block, kept] of blocks)
    it(`are ${what}, in an answer and along a stream`, () => {
      assert.deepEqual(pairs(messages.readAnswer({ content: [block] }).kept), kept)
      const start = { type: 'content_block_start', index: 0, content_block: block }
      assert.deepEqual(keptOf(messages, [start]) ?? [], kept)
    })

  it('include the container that its tools ran in', () => {
    assert.deepEqual(pairs(messages.readAnswer({ content: [], container }).kept), ['container container_1'])
    for (const none of [null, 'container_1', {}, { id: 7 }])
      assert.deepEqual(pairs(messages.readAnswer({ content: [], container: none }).kept), [])
    const start = { type: 'message_start', message: { container } }
    const end = { type: 'message_delta', delta: { container: { id: 'container_2' } } }
    assert.deepEqual(keptOf(messages, [start, end]), ['container container_1', 'container container_2'])
  })

  it('include its own id if it is part of a thread', () => {
    const thread = { thread: { type: 'new' } }
    const answer = { id: 'msg_1', content: [], container }
    assert.deepEqual(pairs(messages.readAnswer(answer, thread).kept), [
      'message msg_1',
      'container container_1',
    ])
    const start = { type: 'message_start', message: { id: 'msg_1' } }
    assert.deepEqual(keptOf(messages, [start], thread), ['message msg_1'])
    for (const request of [{}, { thread: null }, { thread: 'x' }]) {
      assert.deepEqual(pairs(messages.readAnswer({ id: 'msg_1', content: [] }, request).kept), [])
      assert.equal(keptOf(messages, [start], request), undefined)
    }
    assert.equal(keptOf(messages, [{ type: 'message_start' }], thread), undefined)
    assert.deepEqual(pairs(messages.readAnswer({ id: 7, content: [] }, thread).kept), [])
  })
})

describe('the resources that an upstream keeps of a response', () => {
  const output = [
    { type: 'message', id: 'msg_1' },
    { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1' },
    { type: 'code_interpreter_call', id: '', container_id: 'cntr_2' },
    { type: 'code_interpreter_call', id: 'x'.repeat(1025), container_id: 7 },
  ]
  const ITEMS = ['item msg_1', 'item ci_1', 'container cntr_1', 'container cntr_2']
  const CONTAINERS = ['container cntr_1', 'container cntr_2']
  const response = { id: 'resp_1', output }

  it('are the response, its items, and the containers that its tools ran in', () => {
    assert.deepEqual(pairs(responses.readAnswer(response).kept), ['response resp_1', ...ITEMS])
    assert.deepEqual(pairs(responses.readAnswer({ output }).kept), ITEMS)
  })

  it('are only the containers if it is not stored', () => {
    assert.deepEqual(pairs(responses.readAnswer({ ...response, store: false }).kept), CONTAINERS)
  })

  const created = (members: Json = {}) => ({
    type: 'response.created',
    response: { id: 'resp_1', ...members },
  })
  const item = (type: string, index: number) => ({
    type: `response.output_item.${type}`,
    output_index: index,
    item: output[index],
  })
  const completed = { type: 'response.completed', response }

  it('are read from a stream as it arrives, each name once', () => {
    const events = [created(), item('added', 0), item('done', 0), item('done', 1)]
    assert.deepEqual(keptOf(responses, events.slice(0, 1)), ['response resp_1'])
    assert.deepEqual(keptOf(responses, events.slice(0, 2)), ['response resp_1', 'item msg_1'])
    assert.deepEqual(keptOf(responses, events), ['response resp_1', ...ITEMS.slice(0, 3)])
    assert.deepEqual(keptOf(responses, [...events, completed]), ['response resp_1', ...ITEMS])
    assert.deepEqual(keptOf(responses, [completed]), ['response resp_1', ...ITEMS])
    assert.deepEqual(keptOf(responses, []), [])
  })

  it('are the same along a stream of a response that is not stored', () => {
    assert.deepEqual(keptOf(responses, [created({ store: false }), completed]), CONTAINERS)
    assert.deepEqual(keptOf(responses, [created({ store: true }), item('done', 1)]), [
      'response resp_1',
      'item ci_1',
      'container cntr_1',
    ])
  })
})

const rows: [operation: Operation, leaves: boolean, what: string, body: Readonly<Record<string, unknown>>][] =
  [
    [chatCompletions, false, 'text', {}],
    [chatCompletions, false, 'modalities that are no list', { modalities: 'audio' }],
    [chatCompletions, true, 'audio, which later turns name', { modalities: ['text', 'audio'] }],
    [messages, false, 'tools of the caller', { tools: [{ name: 'a' }, { type: 'custom', name: 'b' }] }],
    [messages, false, 'members without a value', { container: null, thread: null, tools: null }],
    [
      messages,
      true,
      'a tool of the upstream',
      { tools: [{ name: 'a' }, { type: 'code_execution_20250825' }] },
    ],
    [messages, true, 'a container', { container: 'container_1' }],
    [messages, true, 'a thread', { thread: 'thread_1' }],
    [responses, true, 'a stored response', {}],
    [responses, true, 'a stored response, as asked for', { store: true }],
    [responses, false, 'none', { store: false, tools: [{ type: 'function', name: 'a' }] }],
    [responses, true, 'a container of code', { store: false, tools: [{ type: 'code_interpreter' }] }],
    [responses, true, 'a container of a shell', { store: false, tools: [{ type: 'shell' }] }],
  ]

describe('a resource that an answer may leave at its line', () => {
  for (const [{ name, keeps }, leaves, what, body] of rows)
    it(`is ${leaves ? '' : 'not '}predicted for ${name}: ${what}`, () => {
      assert.equal(keeps?.(body), leaves)
    })
})

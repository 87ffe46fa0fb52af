import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { FormFile, referencesIn, referencesInQuery } from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>
type Named = readonly [kind: string, id: string, place: string]

const named = (body: Json): Named[] => referencesIn(body).map(({ kind, id, place }) => [kind, id, place()])
const FILE = { file_id: 'f' }

/** Of each body, all that it names. */
function holds(rows: readonly (readonly [what: string, body: Json, things: readonly Named[]])[]): void {
  for (const [what, body, things] of rows)
    it(`${what}: ${things.length}`, () => {
      const before = structuredClone(body)
      assert.deepEqual(named(body), things)
      assert.deepEqual(body, before)
    })
}

describe('what a member of a body names', () => {
  holds([
    ['nothing', {}, []],
    [
      'a text or a number',
      { file_id: 'a', container_id: 7 },
      [
        ['file', 'a', 'file_id'],
        ['container', '7', 'container_id'],
      ],
    ],
    ['no value', { file_id: null, thread_id: undefined, container: true, agent: [] }, []],
    [
      'a list of ids, or of objects with one',
      { file_ids: ['a', 7, null, { id: 'b' }, {}, { id: {} }] },
      [
        ['file', 'a', 'file_ids'],
        ['file', '7', 'file_ids'],
        ['file', 'b', 'file_ids[3].id'],
      ],
    ],
    ['a list by its plural, of objects only', { files: ['a', { id: 'b' }] }, [['file', 'b', 'files[1].id']]],
    ['a list of any name', { list: ['a', { id: 'b' }, { type: 'x', id: 'c' }] }, []],
    [
      'an object with an id',
      { conversation: { id: 'a' }, prompt: { id: 'b' } },
      [
        ['conversation', 'a', 'conversation'],
        ['prompt', 'b', 'prompt'],
      ],
    ],
    ['an object without one', { conversation: {}, prompt: { name: 'a' } }, []],
    ['an object with an id of its own', { user: { id: 'a' }, tool: { id: 'b' } }, []],
    [
      'by name before by type',
      { conversation: { type: 'file_id', id: 'a' } },
      [['conversation', 'a', 'conversation']],
    ],
    [
      'by type before by the holder',
      { source: { type: 'file_reference', id: 'a' } },
      [['file', 'a', 'source']],
    ],
    [
      'by the holder, with a type that is none',
      { source: { type: 7, id: 'a' } },
      [['source', 'a', 'source']],
    ],
    ['a skill', { skill: { type: 'custom', skill_id: 'a' } }, [['skill', 'a', 'skill.skill_id']]],
    [
      'a skill of Anthropic',
      { skill: { type: 'anthropic', skill_id: 'a', ...FILE } },
      [['file', 'f', 'skill.file_id']],
    ],
    ['members of most requests, as texts', { model: 'm', content: 'c', messages: 'x', stream: true }, []],
    [
      'the same as objects',
      { content: { id: 'a' }, messages: { id: 'b' } },
      [
        ['content', 'a', 'content'],
        ['messages', 'b', 'messages'],
      ],
    ],
    [
      'messages with ids',
      { messages: [{ role: 'user', id: 'msg_1', content: [FILE] }] },
      [['file', 'f', 'messages[0].content[0].file_id']],
    ],
    ['what names nothing in any message', { role: FILE, text: FILE, type: FILE }, []],
  ])

  it('is found at any depth, once, with its place', () => {
    assert.deepEqual(named({ a: { b: [[{}, FILE], 'x', null] } }), [['file', 'f', 'a.b[0][1].file_id']])
    const deep = JSON.parse(`${'{"a":'.repeat(5000)}{"file_id":"f"}${'}'.repeat(5000)}`)
    const [found, ...others] = referencesIn(deep)
    assert.deepEqual([found?.kind, found?.id, others], ['file', 'f', []])
    assert.equal(found?.place(), 'a.'.repeat(100))
  })

  it('is nothing of the bytes of a file', () => {
    assert.deepEqual(named({ image: new FormFile('a_id', 'image/png', Buffer.from('{"file_id":"f"}')) }), [])
  })

  it('is found in a list of several, each with its own place', () => {
    const body = { input: [{ content: [FILE] }, { content: [{ x: 1 }, { file_id: 'g' }] }] }
    assert.deepEqual(named(body).toSorted(), [
      ['file', 'f', 'input[0].content[0].file_id'],
      ['file', 'g', 'input[1].content[1].file_id'],
    ])
  })
})

describe('what the caller defines names nothing', () => {
  const DATA = [
    'annotations',
    'arguments',
    'attributes',
    'client_metadata',
    'headers',
    'input_examples',
    'input_schema',
    'logprobs',
    'metadata',
    'output_schema',
    'provider',
    'response_schema',
  ]
  for (const name of DATA)
    it(`${name}, at any depth`, () => {
      for (const data of [FILE, [FILE], { deeper: FILE }])
        assert.deepEqual(named({ [name]: data, a: [{ [name]: data }] }), [])
    })

  const found = (place: string): Named[] => [['file', 'f', place]]
  holds([
    ['parameters of a function', { name: 'f', parameters: FILE }, []],
    ['parameters of anything else', { parameters: FILE }, found('parameters.file_id')],
    ['a schema with a name', { name: 'f', schema: FILE }, []],
    ['a schema of JSON', { type: 'json_schema', schema: FILE }, []],
    ['any other schema', { type: 'other', schema: FILE }, found('schema.file_id')],
    ['a list of citations', { citations: [FILE] }, []],
    ['citations as settings', { citations: FILE }, found('citations.file_id')],
    ['the input of a tool', { type: 'tool_use', input: FILE }, []],
    ['the input of a tool of the upstream', { type: 'server_tool_use', input: FILE }, []],
    ['any other input', { type: 'tool_use_result', input: FILE }, found('input.file_id')],
    ['an input without a type', { input: FILE }, found('input.file_id')],
  ])
})

describe('what an item of a list names by its id', () => {
  const item = (members: Json): Named[] => named({ input: [members] })
  const AS_ITEM: Named[] = [['item', 'a', 'input[0]']]

  it('is the thing of its type', () => {
    assert.deepEqual(item({ type: 'item_reference', id: 'a' }), AS_ITEM)
    assert.deepEqual(named({ list: [{ type: 'file_id', id: 'a' }] }), [['file', 'a', 'list[0]']])
    assert.deepEqual(item({ type: 'item_reference', id: 7 }), [])
  })

  it('is nothing where the item is a whole call', () => {
    const kinds = ['apply_patch', 'computer', 'custom_tool', 'function', 'local_shell', 'mcp', 'shell']
    for (const kind of kinds) assert.deepEqual(item({ type: `${kind}_call`, id: 'a' }), [], kind)
    for (const type of ['message', 'function_call_output', 'call'])
      assert.deepEqual(item({ type, id: 'a' }), [], type)
  })

  it('is an item where a tool of the upstream made it', () => {
    for (const kind of ['image_generation', 'web_search', 'file_search', 'code_interpreter', 'unknown'])
      assert.deepEqual(item({ type: `${kind}_call`, id: 'a' }), AS_ITEM, kind)
    assert.deepEqual(item({ type: 'web_search_call', id: 'ws_resp_1' }), [])
    assert.deepEqual(item({ type: 'web_search_call', id: 'a_ws_resp_' }), [
      ['item', 'a_ws_resp_', 'input[0]'],
    ])
  })

  it('is an item where reasoning says nothing itself', () => {
    const text = [{ type: 'x' }, { type: 'x', text: 'Hm' }]
    for (const whole of [{ encrypted_content: 'x' }, { content: text }, { summary: text }])
      assert.deepEqual(item({ type: 'reasoning', id: 'a', ...whole }), [], JSON.stringify(whole))
    for (const bare of [{}, { encrypted_content: '' }, { content: [{ text: '' }], summary: [] }])
      assert.deepEqual(item({ type: 'reasoning', id: 'a', ...bare }), AS_ITEM, JSON.stringify(bare))
  })

  it('is an item where the rest of a message is left out', () => {
    for (const bare of [{}, { role: 'user' }, { content: 'Hi' }, { type: null, role: null, content: 'Hi' }])
      assert.deepEqual(item({ id: 'a', ...bare }), AS_ITEM, JSON.stringify(bare))
    assert.deepEqual(named({ items: [{ id: 'a' }] }), [['item', 'a', 'items[0]']])
    assert.deepEqual(item({ id: 'a', role: 'user', content: 'Hi' }), [])
    assert.deepEqual(item({ id: 7 }), [])
    assert.deepEqual(named({ list: [{ id: 'a' }] }), [])
    assert.deepEqual(named({ input: 'a' }), [])
    assert.deepEqual(named({ input: ['a'] }), [])
  })
})

describe('a body that names too much', () => {
  const ids = (count: number) => Array.from({ length: count }, (_, i) => `file-${i}`)

  it('is refused beyond a thousand things', () => {
    assert.equal(named({ file_ids: ids(1000) }).length, 1000)
    assert.throws(
      () => referencesIn({ file_ids: ids(1001) }),
      (error) => error instanceof GatewayError && error.code === 'invalid_request',
    )
  })

  it('leaves nothing behind for the next one', () => {
    assert.throws(() => referencesIn({ a: [FILE], file_ids: ids(1001) }))
    assert.deepEqual(named({ thread: 't' }), [['thread', 't', 'thread']])
  })
})

describe('what a query names', () => {
  const rows: [query: string, things: [kind: string, id: string, place: string][]][] = [
    ['', []],
    ['model=m', []],
    ['file_id=a', [['file', 'a', 'file_id']]],
    [
      'file_id=a&file_id=b',
      [
        ['file', 'a', 'file_id'],
        ['file', 'b', 'file_id'],
      ],
    ],
    ['file_ids[]=a', [['file', 'a', 'file_ids[]']]],
    ['thread[id]=a', [['thread', 'a', 'thread[id]']]],
    ['call_id=a', [['call', 'a', 'call_id']]],
    ['tool_call_id=a', []],
    ['metadata[file_id]=a', []],
    ['file[metadata[]=a&xmetadata[file_id]=b', [['file', 'b', 'xmetadata[file_id]']]],
    // Some upstreams divide a query at semicolons.
    ['limit=1;file_id=a', [['file', 'a', 'file_id']]],
    [
      'file_id=a;limit=1',
      [
        ['file', 'a;limit=1', 'file_id'],
        ['file', 'a', 'file_id'],
      ],
    ],
  ]
  for (const [query, things] of rows)
    it(`is ${things.length} of ${query}`, () => {
      const found = referencesInQuery(new URLSearchParams(query))
      assert.deepEqual(
        found.map(({ kind, id, place }) => [kind, id, place()]),
        things,
      )
    })
})

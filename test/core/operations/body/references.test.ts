import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import {
  kindOfField,
  kindOfHolder,
  kindOfList,
  kindOfMember,
  kindOfType,
  referencesInQuery,
} from '../../../../lib/core/operations/body/references.ts'
import { FormFile, referencesIn } from '../../../../lib/core/operations/index.ts'

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

describe('a resource that a member of a body names', () => {
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
    ['a skill of OpenAI', { skills: [{ type: 'skill_reference', skill_id: 'openai-spreadsheets' }] }, []],
    [
      'a skill of a caller at OpenAI',
      { skills: [{ type: 'skill_reference', skill_id: 'skill_openai-a' }] },
      [['skill', 'skill_openai-a', 'skills[0].skill_id']],
    ],
    [
      'a skill of another type',
      { skill: { type: 'custom', skill_id: 'openai-a' } },
      [['skill', 'openai-a', 'skill.skill_id']],
    ],
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
    ['unrelated members of any message', { role: FILE, text: FILE, type: FILE }, []],
  ])

  it('is found at any depth, once, with its place', () => {
    assert.deepEqual(named({ a: { b: [[{}, FILE], 'x', null] } }), [['file', 'f', 'a.b[0][1].file_id']])
    const deep = JSON.parse(`${'{"a":'.repeat(5000)}{"file_id":"f"}${'}'.repeat(5000)}`)
    const [found, ...others] = referencesIn(deep)
    assert.deepEqual([found?.kind, found?.id, others], ['file', 'f', []])
    assert.equal(found?.place(), 'a.'.repeat(100))
  })

  it('is not searched for in the bytes of a file', () => {
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

describe('a name that the caller defines is not a reference:', () => {
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
    ['the state of a browser', { type: 'browser_state', tabs: [FILE], state_changes: [FILE] }, []],
    ['any other tabs', { tabs: [FILE] }, found('tabs[0].file_id')],
  ])
})

describe('the resource that an item of a list names by its id', () => {
  const item = (members: Json): Named[] => named({ input: [members] })
  const AS_ITEM: Named[] = [['item', 'a', 'input[0]']]

  it('is the resource of its type', () => {
    assert.deepEqual(item({ type: 'item_reference', id: 'a' }), AS_ITEM)
    assert.deepEqual(named({ list: [{ type: 'file_id', id: 'a' }] }), [['file', 'a', 'list[0]']])
    assert.deepEqual(item({ type: 'item_reference', id: 7 }), [])
  })

  it('is nothing if the item is a whole call', () => {
    const kinds = [
      'apply_patch',
      'computer',
      'custom_tool',
      'function',
      'local_shell',
      'mcp',
      'shell',
      'tool_search',
    ]
    for (const kind of kinds) assert.deepEqual(item({ type: `${kind}_call`, id: 'a' }), [], kind)
    for (const type of ['message', 'function_call_output', 'call'])
      assert.deepEqual(item({ type, id: 'a' }), [], type)
  })

  it('is an item if a tool of the upstream made it', () => {
    for (const kind of ['image_generation', 'web_search', 'file_search', 'code_interpreter', 'unknown'])
      assert.deepEqual(item({ type: `${kind}_call`, id: 'a' }), AS_ITEM, kind)
    assert.deepEqual(item({ type: 'web_search_call', id: 'ws_resp_1' }), [])
    assert.deepEqual(item({ type: 'web_search_call', id: 'a_ws_resp_' }), [
      ['item', 'a_ws_resp_', 'input[0]'],
    ])
  })

  it('is an item if reasoning has no content of its own', () => {
    const text = [{ type: 'x' }, { type: 'x', text: 'Hm' }]
    for (const whole of [{ encrypted_content: 'x' }, { content: text }, { summary: text }])
      assert.deepEqual(item({ type: 'reasoning', id: 'a', ...whole }), [], JSON.stringify(whole))
    for (const bare of [{}, { encrypted_content: '' }, { content: [{ text: '' }], summary: [] }])
      assert.deepEqual(item({ type: 'reasoning', id: 'a', ...bare }), AS_ITEM, JSON.stringify(bare))
  })

  it('is an item if the rest of a message is missing', () => {
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

describe('a body with too many references', () => {
  const ids = (count: number) => Array.from({ length: count }, (_, i) => `file-${i}`)

  it('is refused beyond a thousand references', () => {
    assert.equal(named({ file_ids: ids(1000) }).length, 1000)
    assert.throws(
      () => referencesIn({ file_ids: ids(1001) }),
      (error) => error instanceof GatewayError && error.code === 'invalid_request',
    )
  })

  it('does not affect the next body', () => {
    assert.throws(() => referencesIn({ a: [FILE], file_ids: ids(1001) }))
    assert.deepEqual(named({ thread: 't' }), [['thread', 't', 'thread']])
  })
})

describe('the number of resources that a query names', () => {
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

const KINDS = [
  'file',
  'vector_store',
  'response',
  'conversation',
  'container',
  'thread',
  'assistant',
  'message_batch',
  'batch',
  'upload',
  'skill',
  'cached_content',
  'message',
]
/** Names of members that refer to nothing that an upstream keeps. */
const HARMLESS = [
  'approval_request',
  'call',
  'caller',
  'client',
  'client_request',
  'connector',
  'custom',
  'customer',
  'end_user',
  'model',
  'parent_tool_use',
  'part',
  'request',
  'span',
  'tool',
  'tool_call',
  'tool_use',
  'trace',
  'user',
]
/** Names that hold an id and do not say so. */
const BARE = {
  agent: 'agent',
  agents: 'agent',
  assistant: 'assistant',
  cached_content: 'cached_content',
  callable_agents: 'agent',
  container: 'container',
  conversation: 'conversation',
  file_uri: 'file',
  input_files: 'file',
  predefined_agents: 'agent',
  session: 'session',
  thread: 'thread',
  training_file: 'file',
  training_files: 'file',
  validation_file: 'file',
  validation_files: 'file',
  vector_store: 'vector_store',
}

const camel = (name: string) => name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
/** A name as callers write it for one upstream or another. */
const formsOf = (name: string) => [name, camel(name), name.toUpperCase(), name.replaceAll('_', '-')]

describe('the kind of a member name', () => {
  for (const kind of KINDS)
    it(`is ${kind} by its ending, in any form`, () => {
      for (const base of [kind, `previous_${kind}`])
        for (const ending of ['id', 'ids'])
          for (const name of formsOf(`${base}_${ending}`)) assert.equal(kindOfMember(name), kind, name)
    })

  it('is none for ids that link parts of one request, or belong to the caller', () => {
    for (const base of [...HARMLESS, 'stop_token'])
      for (const name of [...formsOf(`${base}_id`), ...formsOf(`${base}_ids`)])
        assert.equal(kindOfMember(name), undefined, name)
  })

  it('is the text before the ending if the kind is unknown', () => {
    const rows: [name: string, kind: string][] = [
      ['mystery_id', 'mystery'],
      ['profile_id', 'profile'],
      ['my_tool_id', 'my_tool'],
      ['video_id_file_id', 'file'],
      ['fileID', 'file'],
      ['fileIDs', 'file'],
      ['part2Id', 'part2'],
    ]
    for (const [name, kind] of rows) assert.equal(kindOfMember(name), kind, name)
  })

  it('is known by some names without an ending', () => {
    for (const [name, kind] of Object.entries(BARE))
      for (const form of [name, camel(name), name.replaceAll('_', '-')])
        assert.equal(kindOfMember(form), kind, form)
    assert.equal(kindOfMember('Thread'), 'thread')
  })

  it('is none for other names', () => {
    const others = [
      '',
      'id',
      'ids',
      'ID',
      'video',
      'bid',
      'grids',
      'bestIdeas',
      'threads',
      'file',
      'toString',
    ]
    for (const name of [...others, `${'x'.repeat(40)}_thread`, 'ToString', 'PREDEFINED_AGENTS_TOO'])
      assert.equal(kindOfMember(name), undefined, name)
  })

  it('is recognised in the last 64 characters of a name', () => {
    assert.equal(kindOfMember(`${'x'.repeat(1000)}_file_id`), 'file')
    assert.equal(kindOfMember(`${'x'.repeat(1000)}_id`), 'x'.repeat(61))
  })
})

describe('the kind of an object with an id', () => {
  it('is recognised by the name of its member', () => {
    for (const kind of KINDS.filter((name) => name !== 'message'))
      for (const name of formsOf(kind)) assert.equal(kindOfHolder(name), kind, name)
    assert.deepEqual(['audio', 'inputFile', 'input_message'].map(kindOfHolder), ['audio', 'file', 'message'])
  })

  it('is none if such an object has an id of its own', () => {
    for (const name of ['function', 'message', 'model', 'provider', 'tool', 'user', 'USER'])
      assert.equal(kindOfHolder(name), undefined, name)
  })

  it('is recognised by the plural that names a list of them', () => {
    for (const kind of KINDS) assert.equal(kindOfList(`${kind}s`), kind)
    assert.equal(kindOfList('batches'), 'batch')
    assert.equal(kindOfList('message_batches'), 'message_batch')
    for (const name of [...KINDS, 'input_files', 'items', '']) assert.equal(kindOfList(name), undefined, name)
  })

  it('is recognised by its own type', () => {
    const rows: [type: string, kind: string | undefined][] = [
      ['item_reference', 'item'],
      ['ITEM_REFERENCE', 'item'],
      ['file_id', 'file'],
      ['inputFile_id', 'file'],
      ['file', undefined],
      ['_id', undefined],
      ['item_reference_list', undefined],
      ['an item_reference', undefined],
    ]
    for (const [type, kind] of rows) assert.equal(kindOfType(type), kind, type)
  })
})

describe('the kind of a form field', () => {
  const rows: [field: string, kind: string | undefined][] = [
    ['file_id', 'file'],
    ['file_ids[]', 'file'],
    ['input[0][file_id]', 'file'],
    ['input.0.fileId', 'file'],
    ['conversation[id]', 'conversation'],
    ['conversation.ID', 'conversation'],
    ['a[thread][id]', 'thread'],
    ['thread[id][]', 'thread'],
    ['user[id]', undefined],
    ['thread[name]', undefined],
    ['id', undefined],
    ['[id]', undefined],
    ['', undefined],
    ['[]', undefined],
  ]
  for (const [field, kind] of rows)
    it(`is ${kind ?? 'none'}: ${field}`, () => assert.equal(kindOfField(field), kind))
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  kindOfHolder,
  kindOfList,
  kindOfMember,
  kindOfType,
} from '../../../lib/core/operations/body/reference-names.ts'
import { kindOfField } from '../../../lib/core/operations/index.ts'

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
/** What no upstream keeps. */
const HARMLESS = [
  'approval_request',
  'call',
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

describe('the kind of thing that a member names', () => {
  for (const kind of KINDS)
    it(`is ${kind} by its ending, in any form`, () => {
      for (const base of [kind, `previous_${kind}`])
        for (const ending of ['id', 'ids'])
          for (const name of formsOf(`${base}_${ending}`)) assert.equal(kindOfMember(name), kind, name)
    })

  it('is none for ids that link parts of one request, or are of the caller', () => {
    for (const base of [...HARMLESS, 'stop_token'])
      for (const name of [...formsOf(`${base}_id`), ...formsOf(`${base}_ids`)])
        assert.equal(kindOfMember(name), undefined, name)
  })

  it('is what stands before the ending where nobody knows it', () => {
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

  it('is told of the last 64 characters of a name', () => {
    assert.equal(kindOfMember(`${'x'.repeat(1000)}_file_id`), 'file')
    assert.equal(kindOfMember(`${'x'.repeat(1000)}_id`), 'x'.repeat(61))
  })
})

describe('the kind of thing that an object with an id is', () => {
  it('is told by the name of the member that holds it', () => {
    for (const kind of KINDS.filter((name) => name !== 'message'))
      for (const name of formsOf(kind)) assert.equal(kindOfHolder(name), kind, name)
    assert.deepEqual(['audio', 'inputFile', 'input_message'].map(kindOfHolder), ['audio', 'file', 'message'])
  })

  it('is none where such an object has an id of its own', () => {
    for (const name of ['function', 'message', 'model', 'provider', 'tool', 'user', 'USER'])
      assert.equal(kindOfHolder(name), undefined, name)
  })

  it('is told by the plural that names a list of them', () => {
    for (const kind of KINDS) assert.equal(kindOfList(`${kind}s`), kind)
    assert.equal(kindOfList('batches'), 'batch')
    assert.equal(kindOfList('message_batches'), 'message_batch')
    for (const name of [...KINDS, 'input_files', 'items', '']) assert.equal(kindOfList(name), undefined, name)
  })

  it('is told by its own type', () => {
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

describe('the kind of thing that a field of a form names', () => {
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

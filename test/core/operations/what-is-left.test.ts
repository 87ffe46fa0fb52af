import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'

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

describe('what an answer may leave at its line', () => {
  for (const [{ name, keeps }, leaves, what, body] of rows)
    it(`is ${leaves ? '' : 'not '}known beforehand of ${name}: ${what}`, () => {
      assert.equal(keeps?.(body), leaves)
    })
})

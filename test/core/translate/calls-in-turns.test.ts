import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatChunk } from '../../support/scripted-upstream.ts'
import { messageOf } from './accumulate.ts'
import { relayTranslated } from './relayed.ts'

const begin = (index: number) =>
  chatChunk({
    tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }],
  })
const piece = (index: number, args: string) =>
  chatChunk({ tool_calls: [{ index, function: { arguments: args } }] })
const END = [chatChunk({}, 'tool_calls'), 'data: [DONE]\n\n']

/** Beyond what may wait for an open tool call to end. */
const LONG = 'x'.repeat(70_000)

describe('what comes while a tool call is open', () => {
  it('waits no longer than until the call is whole', () => {
    const events = [begin(0), begin(1), piece(1, '{"a":'), piece(0, '{"b":'), piece(1, '1}'), piece(0, '2}')]
    const { flowed, text } = relayTranslated('openai', [...events, ...END].join(''))
    assert.match(flowed, /call_1[\s\S]*\{\\"a\\":1\}/)
    assert.deepEqual(
      messageOf(text).content.map(({ input }: { input: unknown }) => input),
      [{ b: 2 }, { a: 1 }],
    )
  })

  it('waits until the end for a call without arguments', () => {
    const events = [begin(0), begin(1), piece(1, '{"a":1}'), chatChunk({ content: 'Done.' })]
    const { flowed, text } = relayTranslated('openai', [...events, ...END].join(''))
    assert.doesNotMatch(flowed, /call_1/)
    assert.deepEqual(
      messageOf(text).content.map(({ type }: { type: string }) => type),
      ['tool_use', 'tool_use', 'text'],
    )
  })

  it('goes out where it is too much to wait: the open call is taken for ended', () => {
    const events = [begin(0), begin(1), piece(1, '{"a":"'), piece(1, LONG), piece(1, '"}')]
    const { flowed, text } = relayTranslated('openai', [...events, ...END].join(''))
    assert.match(flowed, /xxx/)
    const [first, second] = messageOf(text).content
    assert.deepEqual(first.input, {})
    assert.equal(second.input.a, LONG)
  })

  it('breaks the stream where the call that was taken for ended goes on', () => {
    const events = [begin(0), begin(1), piece(1, '{"a":"'), piece(1, LONG), piece(0, '{}')]
    const { end, detail } = relayTranslated('openai', [...events, ...END].join(''))
    assert.equal(end, 'failed')
    assert.match(detail ?? '', /continued after the next one/)
  })
})

describe('a tool call without a name', () => {
  it('is left out and counted', () => {
    const events = [
      chatChunk({ content: 'Hello' }),
      chatChunk({ tool_calls: [{ index: 0, id: 'call_0', function: { arguments: '{}' } }] }),
    ]
    const { text, skipped } = relayTranslated('openai', [...events, ...END].join(''))
    assert.deepEqual(messageOf(text).content, [{ type: 'text', text: 'Hello' }])
    assert.equal(skipped, 1)
  })

  it('breaks the stream where its arguments do not end', () => {
    const { end, detail } = relayTranslated('openai', [piece(0, LONG), ...END].join(''))
    assert.equal(end, 'failed')
    assert.match(detail ?? '', /no name/)
  })

  it('begins when the name comes, with the arguments that came before', () => {
    const named = chatChunk({ tool_calls: [{ index: 0, id: 'call_0', function: { name: 'f' } }] })
    const { text } = relayTranslated('openai', [piece(0, '{"a":'), named, piece(0, '1}'), ...END].join(''))
    const [call] = messageOf(text).content
    assert.deepEqual([call.name, call.input], ['f', { a: 1 }])
  })
})

describe('arguments nested too deep to be written again', () => {
  const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const start = `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":${deep}}}\n\n`
  const stop = 'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
  const end = 'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n'

  for (const [where, events] of [
    ['at the end of the block', [start, stop, end]],
    ['at the end of the message', [start, end]],
  ] as const) {
    it(`break the stream ${where}`, () => {
      const { end, detail } = relayTranslated('anthropic', events.join(''))
      assert.equal(end, 'failed')
      assert.match(detail ?? '', /is not valid JSON/)
    })
  }
})

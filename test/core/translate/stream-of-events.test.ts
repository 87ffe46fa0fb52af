import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isJsonObject } from '../../../lib/core/json/index.ts'
import { thinkingBlocks } from '../../../lib/core/translate/parts/reasoning-details.ts'
import { completionOf } from './accumulate.ts'
import { relayTranslated } from './relayed.ts'
import { inputOf, jsonText, testRelayPaths, textPieces, toolCall, wellFormed } from './stream-properties.ts'

describe('events of an Anthropic-style line', () => {
  const block = fc.oneof(
    textPieces.map((pieces) => ({ type: 'text' as const, pieces: wellFormed(pieces) })),
    fc.tuple(textPieces, fc.base64String({ minLength: 1 })).map(([pieces, signature]) => ({
      type: 'thinking' as const,
      pieces: wellFormed(pieces),
      signature,
    })),
    toolCall.map((tool) => ({ type: 'tool_use' as const, ...tool })),
    fc.base64String({ minLength: 1 }).map((data) => ({ type: 'redacted_thinking' as const, data })),
  )
  const source = fc
    .record({
      blocks: fc.array(block, { minLength: 1, maxLength: 6 }),
      pings: fc.boolean(),
      spaced: fc.boolean(),
    })
    .filter(({ blocks }) => blocks.some((one) => !('pieces' in one) || one.pieces.join('') !== ''))
  type Source = typeof source extends fc.Arbitrary<infer T> ? T : never

  function streamOf({ blocks, pings, spaced }: Source): string {
    const event = (json: { type: string }) => `event: ${json.type}\ndata: ${jsonText(json, spaced)}\n\n`
    const delta = (index: number, of: object) =>
      event({ type: 'content_block_delta', index, delta: of } as never)
    const started = (one: Source['blocks'][number], index: number) => {
      if (one.type === 'text') return { type: 'text', text: '' }
      if (one.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' }
      if (one.type === 'tool_use')
        return { type: 'tool_use', id: `toolu_${index}`, name: one.name, input: {} }
      return one
    }
    const deltas = (one: Source['blocks'][number]): object[] => {
      if (one.type === 'text') return one.pieces.map((text) => ({ type: 'text_delta', text }))
      if (one.type === 'thinking')
        return [
          ...one.pieces.map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: one.signature },
        ]
      if (one.type !== 'tool_use') return []
      return (one.bare ? [''] : one.json).map((partial) => ({
        type: 'input_json_delta',
        partial_json: partial,
      }))
    }
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      usage: { input_tokens: 7, cache_read_input_tokens: 2, output_tokens: 1 },
    }
    return [
      event({ type: 'message_start', message } as never),
      ...blocks.flatMap((one, index) => [
        event({ type: 'content_block_start', index, content_block: started(one, index) } as never),
        ...(pings ? [event({ type: 'ping' })] : []),
        ...deltas(one).map((of) => delta(index, of)),
        event({ type: 'content_block_stop', index } as never),
      ]),
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 4 },
      } as never),
      event({ type: 'message_stop' }),
    ].join('')
  }

  it('make a completion of the same content', () => {
    fc.assert(
      fc.property(source, (given) => {
        const request = { stream_options: { include_usage: true } }
        const { text, end, skipped } = relayTranslated('anthropic', streamOf(given), { request })
        assert.equal(end, 'complete')
        assert.equal(skipped, 0)
        const { message, finish_reason: finish, usage } = completionOf(text)
        const of = <T extends string>(type: T) =>
          given.blocks.filter(
            (one): one is Extract<Source['blocks'][number], { type: T }> => one.type === type,
          )
        assert.equal(
          message.content,
          of('text')
            .flatMap(({ pieces }) => pieces)
            .join(''),
        )
        const tools = message.tool_calls ?? []
        assert.deepEqual(
          tools.map((call: { function: { name: string; arguments: string } }) => [
            call.function.name,
            JSON.parse(call.function.arguments),
          ]),
          of('tool_use').map((tool) => [tool.name, inputOf(tool)]),
        )
        const thought = given.blocks.flatMap((one): object[] => {
          if (one.type === 'thinking')
            return [{ type: 'thinking', thinking: one.pieces.join(''), signature: one.signature }]
          return one.type === 'redacted_thinking' ? [one] : []
        })
        assert.ok(isJsonObject(message))
        assert.deepEqual(thinkingBlocks(message), thought)
        assert.equal(finish, 'stop')
        assert.deepEqual(
          [usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens],
          [9, 4, 2],
        )
      }),
      { numRuns: 400 },
    )
  })

  testRelayPaths('anthropic', source.map(streamOf))

  it('cite one page, or several, at the end of the text that they were cited for', () => {
    const page = (name: string) => ({
      type: 'web_search_result_location',
      url: `https://a.test/${name}`,
      title: name,
    })
    const cited = (start_index: number, end_index: number, name: string) => ({
      type: 'url_citation',
      url_citation: { start_index, end_index, url: `https://a.test/${name}`, title: name },
    })
    const event = (type: string, members: object = {}) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
    const block = (index: number, text: string, ...names: string[]) =>
      event('content_block_start', { index, content_block: { type: 'text', text: '' } }) +
      event('content_block_delta', { index, delta: { type: 'text_delta', text } }) +
      names
        .map((name) =>
          event('content_block_delta', { index, delta: { type: 'citations_delta', citation: page(name) } }),
        )
        .join('') +
      event('content_block_stop', { index })
    const { text } = relayTranslated(
      'anthropic',
      event('message_start', { message: { id: 'msg_1', role: 'assistant', model: 'm', content: [] } }) +
        block(0, 'Hello') +
        block(1, ' rain', 'a') +
        block(2, ' sun', 'b', 'c') +
        event('message_delta', { delta: { stop_reason: 'end_turn' } }) +
        event('message_stop'),
    )
    assert.deepEqual(completionOf(text).message.annotations, [
      cited(5, 10, 'a'),
      cited(10, 14, 'b'),
      cited(10, 14, 'c'),
    ])
  })
})

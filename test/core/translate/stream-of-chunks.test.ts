import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { messageOf } from './accumulate.ts'
import { relayTranslated } from './relayed.ts'
import {
  inputOf,
  jsonText,
  type Tool,
  testRelayPaths,
  textPieces,
  toolCall,
  wellFormed,
} from './stream-properties.ts'

describe('chunks of an OpenAI-style line', () => {
  const source = fc
    .record({
      thinking: textPieces,
      text: textPieces,
      tools: fc.array(toolCall, { maxLength: 4 }),
      order: fc.array(fc.nat(), { maxLength: 40 }),
      noise: fc.array(fc.constantFrom(': comment\n\n', 'data: {"choices":[]}\n\n'), { maxLength: 3 }),
      spaced: fc.boolean(),
      usageApart: fc.boolean(),
    })
    .filter(
      ({ thinking, text, tools }) => [...thinking, ...text].some((piece) => piece !== '') || tools.length > 0,
    )

  function streamOf({
    thinking,
    text,
    tools,
    order,
    noise,
    spaced,
    usageApart,
  }: typeof source extends fc.Arbitrary<infer T> ? T : never): string {
    const queues: object[][] = [
      wellFormed(thinking).map((piece) => ({ reasoning_content: piece, content: null })),
      wellFormed(text).map((content) => ({ content })),
      ...tools.map(({ name, json, bare }, index) => [
        { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } }] },
        ...(bare ? [] : json.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] }))),
      ]),
    ]
    const deltas: object[] = [{ role: 'assistant', content: '' }]
    for (const pick of order) {
      const filled = queues.filter((queue) => queue.length > 0)
      const next = filled[pick % Math.max(1, filled.length)]?.shift()
      if (next) deltas.push(next)
    }
    deltas.push(...queues.flat())
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 4,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 2 },
    }
    const chunk = (choices: object[], extra: object = {}) =>
      `data: ${jsonText({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...extra }, spaced)}\n\n`
    const finish = { index: 0, delta: {}, finish_reason: tools.length > 0 ? 'tool_calls' : 'stop' }
    return [
      ...deltas.map((delta, i) => chunk([{ index: 0, delta, finish_reason: null }]) + (noise[i] ?? '')),
      chunk([finish], usageApart ? {} : { usage }),
      ...(usageApart ? [chunk([], { usage })] : []),
      'data: [DONE]\n\n',
    ].join('')
  }

  it('make a message of the same content, one block at a time, in whatever order they come', () => {
    fc.assert(
      fc.property(source, (given) => {
        const { text, end, skipped } = relayTranslated('openai', streamOf(given))
        assert.equal(end, 'complete')
        assert.equal(skipped, 0)
        const message = messageOf(text)
        const told = (kind: string, member: string) =>
          message.content
            .filter(({ type }: { type: string }) => type === kind)
            .map((block: Record<string, unknown>) => block[member])
        assert.equal(told('text', 'text').join(''), wellFormed(given.text).join(''))
        assert.equal(told('thinking', 'thinking').join(''), wellFormed(given.thinking).join(''))
        assert.deepEqual(
          told('tool_use', 'id')
            .map((id: string) => Number(id.slice(5)))
            .sort(),
          given.tools.map((_, i) => i),
        )
        for (const { type, id, name, input: got } of message.content) {
          if (type !== 'tool_use') continue
          const tool = given.tools[Number(id.slice(5))] as Tool
          assert.equal(name, tool.name)
          assert.deepEqual(got, inputOf(tool))
        }
        assert.equal(message.stop_reason, given.tools.length > 0 ? 'tool_use' : 'end_turn')
        assert.deepEqual(message.usage, {
          input_tokens: 7,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 2,
          output_tokens: 4,
        })
      }),
      { numRuns: 400 },
    )
  })

  testRelayPaths('openai', source.map(streamOf))
})

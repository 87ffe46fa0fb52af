import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { responsesAsChat } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { Untranslatable } from '../../../lib/core/translate/translation.ts'
import { clientOn } from './as-responses.ts'

const spawn = { type: 'function', name: 'spawn', parameters: { type: 'object' }, strict: false }
const tools = [
  { ...spawn, name: 'run' },
  { type: 'namespace', name: 'agents', description: 'Others.', tools: [spawn] },
]
const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
const asChat = (body: JsonObject) => responsesAsChat.request({ model: 'm', input: 'hi', ...body }, context)
const called = (name: string) => [
  { index: 0, id: 'call_1', type: 'function', function: { name, arguments: '{}' } },
]
const answered = { request: { tools }, created: 5, estimatedInputTokens: 0 }

describe('a namespace of functions', () => {
  it('becomes functions whose names hold its own', () => {
    const names = objectsIn(asChat({ tools }).tools).map(({ function: fn }) => isJsonObject(fn) && fn.name)
    assert.deepEqual(names, ['run', 'agents__spawn'])
  })

  it('is refused where its name, which stands before each of them, is too long', () => {
    const long = (length: number) => [spawn, { type: 'namespace', name: 'n'.repeat(length), tools: [spawn] }]
    assert.equal(objectsIn(asChat({ tools: long(256) }).tools).length, 2)
    assert.throws(
      () => asChat({ tools: long(257) }),
      (error) => error instanceof Untranslatable && error.param === 'tools[1].name',
    )
  })

  it('is told of a call, and found again in the next turn', () => {
    const message = { role: 'assistant', content: null, tool_calls: called('agents__spawn') }
    const { body } = responsesAsChat.answer(
      { id: 'c', choices: [{ message, finish_reason: 'tool_calls' }] },
      {},
      answered,
    )
    const [call = {}] = objectsIn(body.output)
    assert.deepEqual([call.name, call.namespace], ['spawn', 'agents'])
    const [, said] = objectsIn(asChat({ tools, input: [{ role: 'user', content: 'hi' }, call] }).messages)
    const [again] = objectsIn(said?.tool_calls)
    assert.ok(isJsonObject(again?.function))
    assert.equal(again.function.name, 'agents__spawn')
  })

  it('is told of a streamed call, and of none of another function', async () => {
    for (const [name, expected] of [
      ['agents__spawn', ['spawn', 'agents']],
      ['run', ['run', undefined]],
    ] as const) {
      const chunk = (delta: object, finish_reason: string | null = null) =>
        `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
      const events = [chunk({ tool_calls: called(name) }), chunk({}, 'tool_calls'), 'data: [DONE]\n\n']
      const client = clientOn('openai', responsesAsChat, events, { tools })
      const { output } = await client.responses.stream({ model: 'm', input: 'hi' }).finalResponse()
      const [call] = output
      assert.ok(call?.type === 'function_call')
      assert.deepEqual([call.name, (call as { namespace?: string }).namespace], expected)
    }
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { Untranslatable } from '../../../lib/core/translate/translation.ts'

const context = { upstreamModel: 'some-model', defaultMaxTokens: 500 }
const called = (args?: unknown): JsonObject => ({
  model: 'chat',
  input: [
    { role: 'user', content: 'Rain?' },
    { type: 'function_call', call_id: 'call_a', name: 'weather', arguments: args },
    { type: 'function_call_output', call_id: 'call_a', output: 'Rain' },
  ],
})
const inChat = (args?: unknown): unknown[] =>
  objectsIn(responsesAsChat.request(called(args), context).messages)
    .flatMap((message) => objectsIn(message.tool_calls))
    .map(({ function: fn }) => isJsonObject(fn) && fn.arguments)
const inMessages = (args?: unknown): unknown[] =>
  objectsIn(responsesAsMessages.request(called(args), context).messages)
    .flatMap(({ content }) => objectsIn(content))
    .filter(({ type }) => type === 'tool_use')
    .map(({ input }) => input)

describe('the arguments of a call in the input of a response', () => {
  it('reach the model also where they are given as an object', () => {
    assert.deepEqual(inChat({ city: 'Rome' }), ['{"city":"Rome"}'])
    assert.deepEqual(inMessages({ city: 'Rome' }), [{ city: 'Rome' }])
  })

  it('are empty where there are none', () => {
    for (const none of [undefined, null]) assert.deepEqual(inChat(none), ['{}'])
    for (const none of [undefined, null, '']) assert.deepEqual(inMessages(none), [{}])
  })

  for (const args of [['Rome'], 1, true])
    it(`are refused: ${JSON.stringify(args)}`, () => {
      const named = (error: unknown) =>
        error instanceof Untranslatable && error.param === 'input[1].arguments'
      assert.throws(() => inChat(args), named)
      assert.throws(() => inMessages(args), named)
    })
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { chatCompletions, messages } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'

const context = { request: { model: 'chat' }, created: 5, estimatedInputTokens: 9 }
const REASONS = ['new', '', 7, null, undefined, ['length'], ...Object.getOwnPropertyNames(Object.prototype)]

it('an answer that ends for a reason that nobody knows, whatever its name, has ended as usual', () => {
  for (const reason of REASONS) {
    const message = { role: 'assistant', content: 'Hello' }
    const chat = { id: 'c', choices: [{ index: 0, message, finish_reason: reason }] }
    const toMessages = translationOf(messages, { protocol: 'openai' })?.answer(chat, {}, context)
    assert.equal(toMessages?.body.stop_reason, 'end_turn', String(reason))
    const content = [{ type: 'text', text: 'Hello' }]
    const answer = { id: 'msg_1', model: 'claude', content, stop_reason: reason }
    const toChat = translationOf(chatCompletions, { protocol: 'anthropic' })?.answer(answer, {}, context)
    assert.ok(toChat)
    const [choice] = toChat.body.choices as [{ finish_reason: unknown }]
    assert.equal(choice.finish_reason, 'stop', String(reason))
  }
})

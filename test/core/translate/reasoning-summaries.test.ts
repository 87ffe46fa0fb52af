import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { messageEvent } from '../../support/scripted-upstream.ts'
import { clientOn } from './as-responses.ts'

const ASKED = { reasoning: { effort: 'low', summary: 'auto' } }
const summary = [{ type: 'summary_text', text: 'Hm. Well.' }]
const thinking = { type: 'thinking', thinking: 'Hm. Well.', signature: 'c2ln' }
const context = { upstreamModel: 'm', defaultMaxTokens: 5000 }
const answerContext = (request: JsonObject) => ({ request, created: 5, estimatedInputTokens: 0 })

const chatAnswer = {
  id: 'c',
  choices: [{ message: { content: 'Hi', reasoning_content: 'Hm. Well.' }, finish_reason: 'stop' }],
}
const message = { id: 'msg_1', content: [thinking, { type: 'text', text: 'Hi' }], stop_reason: 'end_turn' }

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const block = (index: number, content_block: object, ...deltas: object[]) => [
  messageEvent('content_block_start', { index, content_block }),
  ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
  messageEvent('content_block_stop', { index }),
]

const LINES = [
  {
    name: 'a chat line',
    protocol: 'openai' as const,
    passage: responsesAsChat,
    answer: chatAnswer,
    events: [
      chunk({ reasoning_content: 'Hm. ' }),
      chunk({ reasoning_content: 'Well.' }),
      chunk({ content: 'Hi' }, 'stop'),
      'data: [DONE]\n\n',
    ],
  },
  {
    name: 'an anthropic line',
    protocol: 'anthropic' as const,
    passage: responsesAsMessages,
    answer: message,
    events: [
      messageEvent('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } }),
      ...block(
        0,
        { type: 'thinking', thinking: '' },
        { type: 'thinking_delta', thinking: 'Hm. ' },
        { type: 'thinking_delta', thinking: 'Well.' },
        { type: 'signature_delta', signature: 'c2ln' },
      ),
      ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' }),
      messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
      messageEvent('message_stop'),
    ],
  },
]

describe('a summary of the reasoning', () => {
  for (const { name, protocol, passage, answer, events } of LINES) {
    it(`is the reasoning of ${name}`, () => {
      const { body } = passage.answer(answer, {}, answerContext(ASKED))
      const [item = {}] = objectsIn(body.output)
      assert.deepEqual([item.type, item.summary, item.content], ['reasoning', summary, undefined])
      const [other = {}] = objectsIn(passage.answer(answer, {}, answerContext({})).body.output)
      assert.deepEqual(other.summary, [])
      assert.deepEqual(other.content, [{ type: 'reasoning_text', text: 'Hm. Well.' }])
    })

    it(`is the streamed reasoning of ${name}, in its own events`, async () => {
      const stream = clientOn(protocol, passage, events, ASKED).responses.stream({ model: 'm', input: 'x' })
      const types: string[] = []
      let text = ''
      for await (const event of stream) {
        types.push(event.type)
        if (event.type === 'response.reasoning_summary_text.delta') text += event.delta
      }
      const [item] = (await stream.finalResponse()).output
      assert.ok(item?.type === 'reasoning')
      assert.deepEqual(item.summary, summary)
      assert.equal(text, 'Hm. Well.')
      assert.deepEqual(
        types.filter((type) => type.includes('reasoning')),
        [
          'response.reasoning_summary_part.added',
          'response.reasoning_summary_text.delta',
          'response.reasoning_summary_text.delta',
          'response.reasoning_summary_text.done',
          'response.reasoning_summary_part.done',
        ],
      )
    })
  }

  it('goes back as the thinking that it is, signed', () => {
    const { body } = responsesAsMessages.answer(message, {}, answerContext(ASKED))
    const input = [{ role: 'user', content: 'x' }, ...objectsIn(body.output), { role: 'user', content: 'y' }]
    const [, turn] = objectsIn(responsesAsMessages.request({ model: 'm', input, ...ASKED }, context).messages)
    assert.deepEqual(objectsIn(turn?.content)[0], thinking)
  })
})

describe('reasoning that is sealed', () => {
  const SEALED = { include: ['reasoning.encrypted_content'] }

  for (const { name, protocol, passage, answer, events } of LINES) {
    for (const asked of [SEALED, { ...SEALED, ...ASKED }]) {
      it(`needs nothing beside it to go back to ${name}${'reasoning' in asked ? ', with a summary' : ''}`, async () => {
        const plain = passage.answer(answer, {}, answerContext(asked)).body
        const { responses } = clientOn(protocol, passage, events, asked)
        const streamed = await responses.stream({ model: 'm', input: 'x' }).finalResponse()
        const sentFor = (output: unknown, bare: boolean) => {
          const items = objectsIn(output).map((item) =>
            bare && item.type === 'reasoning'
              ? {
                  type: item.type,
                  id: item.id,
                  summary: [],
                  content: null,
                  encrypted_content: item.encrypted_content,
                }
              : item,
          )
          const input = [{ role: 'user', content: 'x' }, ...items, { role: 'user', content: 'y' }]
          return passage.request({ model: 'm', input, reasoning: { effort: 'low' } }, context).messages
        }
        for (const output of [plain.output, streamed.output]) {
          assert.deepEqual(sentFor(output, true), sentFor(output, false))
          assert.match(JSON.stringify(sentFor(output, true)), /"(?:reasoning_content|thinking)":"Hm. Well."/)
        }
      })
    }
  }

  it('stands alone in an answer', () => {
    const redacted = { type: 'redacted_thinking', data: 'c2VjcmV0' }
    const answer = { id: 'msg_1', content: [redacted], stop_reason: 'max_tokens' }
    const { body } = responsesAsMessages.answer(answer, {}, answerContext(ASKED))
    const [item = {}, ...others] = objectsIn(body.output)
    assert.deepEqual([item.type, item.summary, others], ['reasoning', [], []])
    assert.equal(typeof item.encrypted_content, 'string')
  })

  it('stands alone in an input, whoever sealed it', () => {
    const sealed = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' }
    for (const item of [sealed, { ...sealed, id: undefined }, { ...sealed, content: null }]) {
      const input = [{ role: 'user', content: 'x' }, item, { role: 'user', content: 'y' }]
      for (const { passage } of LINES) assert.ok(passage.request({ model: 'm', input }, context).messages)
    }
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../lib/core/json/index.ts'
import { objectsIn } from '../../../lib/core/json/index.ts'
import { messageAsChatAnswer } from '../../../lib/core/translate/chat-as-messages/answer.ts'
import { Unfenced, unfenced } from '../../../lib/core/translate/chat-as-messages/unfenced.ts'
import { responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { messageEvents } from '../../support/scripted-upstream.ts'
import { clientOn } from './as-responses.ts'
import { relayTranslated } from './relayed.ts'
import { chat } from './requests.ts'

const JSON_TEXT = '{"a": "```", "b": [1]}'
const FORMS = [JSON_TEXT, `\`\`\`json\n${JSON_TEXT}\n\`\`\``, `\n\`\`\`\n${JSON_TEXT}\n\`\`\`\n`]
const request = { response_format: { type: 'json_object' } }
const asked = { text: { format: { type: 'json_object' } } }

describe('an answer that shall be a JSON object', () => {
  it('is asked for in the system prompt, behind that of the caller', () => {
    const made = chat.translate({
      ...request,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ],
    })
    const [first, second] = objectsIn(made.system)
    assert.equal(first?.text, 'Be brief.')
    assert.match(String(second?.text), /one JSON object/)
    assert.equal(made.output_config, undefined)
  })

  for (const form of FORMS) {
    const message: JsonObject = {
      id: 'msg_1',
      model: 'm',
      content: [{ type: 'text', text: form }],
      stop_reason: 'end_turn',
    }
    it(`comes without a code block, whole: ${JSON.stringify(form)}`, () => {
      const { body } = messageAsChatAnswer(message, {}, { request, created: 5, estimatedInputTokens: 0 })
      assert.deepEqual(JSON.parse(String(contentOf(body))), JSON.parse(JSON_TEXT))
      const plain = messageAsChatAnswer(message, {}, { request: {}, created: 5, estimatedInputTokens: 0 })
      assert.equal(contentOf(plain.body), form)
      const response = responsesAsMessages.answer(
        message,
        {},
        { request: asked, created: 5, estimatedInputTokens: 0 },
      )
      const [item] = objectsIn(response.body.output)
      assert.deepEqual(JSON.parse(String(objectsIn(item?.content)[0]?.text)), JSON.parse(JSON_TEXT))
    })

    it(`comes without a code block, streamed: ${JSON.stringify(form)}`, async () => {
      const events = messageEvents([...form])
      const { text } = relayTranslated('anthropic', events.join(''), { request })
      assert.deepEqual(JSON.parse(textOf(text)), JSON.parse(JSON_TEXT))
      const client = clientOn('anthropic', responsesAsMessages, events, asked)
      const stream = client.responses.stream({ model: 'm', input: 'hi' })
      const { output_text: said } = await stream.finalResponse()
      assert.deepEqual(JSON.parse(said), JSON.parse(JSON_TEXT))
    })
  }

  for (const [what, first, piece] of [
    ['begins with endless white space', '', ' \n'],
    ['does not end the line of its code block', '```', 'json'],
    ['goes on with endless white space in its code block', '```json\n{}', '    '],
    ['goes on with endless backticks in its code block', '```json\n{}', '`'],
  ] as const)
    it(`costs each piece the same if it ${what}`, { timeout: 10_000 }, () => {
      // To read all of them again for each piece would take minutes.
      const pieces = 100_000
      const unfencing = new Unfenced()
      let made = unfencing.push(first)
      for (let i = 0; i < pieces; i++) made += unfencing.push(piece)
      made += unfencing.end()
      assert.equal(made, unfenced(first + piece.repeat(pieces)))
    })

  it('is the only one that loses its code block', () => {
    const json_schema = { name: 'n', schema: { type: 'object', properties: {} } }
    const text = '```\n{}\n```'
    const told = (response_format: unknown) => {
      const asked = { request: { response_format }, created: 5, estimatedInputTokens: 0 }
      return contentOf(messageAsChatAnswer({ content: [{ type: 'text', text }] }, {}, asked).body)
    }
    for (const other of [
      undefined,
      { type: 'text' },
      { type: 'json_schema', json_schema },
      { type: 'json_object', schema: json_schema.schema },
      { type: 'grammar' },
    ])
      assert.equal(told(other), text)
    assert.equal(told({ type: 'json_object' }), '{}')
  })

  it('comes the same in whatever pieces', () => {
    const piece = fc.constantFrom('```', '`', '\n', 'json', '{"a":1}', ' ', 'x')
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const unfencing = new Unfenced()
        const made = pieces.map((text) => unfencing.push(text)).join('') + unfencing.end()
        assert.equal(made, unfenced(pieces.join('')))
        if (!pieces.join('').trimStart().startsWith('```')) assert.equal(made, pieces.join(''))
      }),
    )
  })
})

function contentOf({ choices }: JsonObject): unknown {
  const [{ message } = {}] = objectsIn(choices)
  return (message as JsonObject).content
}

/** The content of a stream of chunks. */
function textOf(stream: string): string {
  return [...stream.matchAll(/^data: (\{.*)$/gm)]
    .map(([, data = '']) => objectsIn(JSON.parse(data).choices)[0]?.delta as JsonObject | undefined)
    .map((delta) => (typeof delta?.content === 'string' ? delta.content : ''))
    .join('')
}

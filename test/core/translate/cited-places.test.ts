import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { objectsIn } from '../../../lib/core/json/index.ts'
import { responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { messageEvent } from '../../support/scripted-upstream.ts'
import { clientOn } from './as-responses.ts'

const page = { url: 'https://rain.example/', title: 'Rain' }
const citation = { type: 'web_search_result_location', ...page, cited_text: 'rain', encrypted_index: 'e' }
const text = (index: number, said: string, ...more: object[]) =>
  block(index, { type: 'text', text: '' }, { type: 'text_delta', text: said }, ...more)

function block(index: number, content_block: object, ...deltas: object[]): string[] {
  return [
    messageEvent('content_block_start', { index, content_block }),
    ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
    messageEvent('content_block_stop', { index }),
  ]
}

/** What stands between two texts, so that they become two items. */
const BETWEEN: Readonly<Record<string, readonly string[]>> = {
  'a search': [
    ...block(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'rain rome' } }),
    ...block(2, {
      type: 'web_search_tool_result',
      tool_use_id: 's',
      content: [{ type: 'web_search_result', ...page }],
    }),
  ],
  thinking: block(1, { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: 'Rome …' }),
}

describe('the places that a streamed response cites', () => {
  for (const [what, events] of Object.entries(BETWEEN)) {
    it(`are those in the text that holds the citation, behind ${what}`, async () => {
      const client = clientOn('anthropic', responsesAsMessages, [
        messageEvent('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } }),
        ...text(0, 'I look it up. '),
        ...events,
        ...text(3, 'In Rome, '),
        ...text(4, 'it rains.', { type: 'citations_delta', citation }),
        messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
        messageEvent('message_stop'),
      ])
      const { output } = await client.responses.stream({ model: 'm', input: 'hi' }).finalResponse()
      const texts = output.flatMap((one) => (one.type === 'message' ? objectsIn(one.content) : []))
      assert.deepEqual(
        texts.map(({ text, annotations }) => [text, annotations]),
        [
          ['I look it up. ', []],
          ['In Rome, it rains.', [{ type: 'url_citation', start_index: 9, end_index: 18, ...page }]],
        ],
      )
    })
  }
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { messages, referencesIn, responses } from '../../../lib/core/operations/index.ts'
import { messageAsChatAnswer } from '../../../lib/core/translate/chat-as-messages/answer.ts'
import { translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { messageEvent } from '../../support/scripted-upstream.ts'
import { clientOn } from './as-responses.ts'
import { ask, type Body, chat, message, tool } from './requests.ts'

const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
const asChat = (body: JsonObject) => responsesAsChat.request({ model: 'm', input: 'hi', ...body }, context)
const asMessages = (body: JsonObject) =>
  responsesAsMessages.request({ model: 'm', input: 'hi', ...body }, context)

const ROME = { city: 'Rome', country: 'IT' }
const place = { type: 'approximate', ...ROME }
const chatPlace = { type: 'approximate', approximate: ROME }
const anthropic = { type: 'web_search_20250305', name: 'web_search' }
const refusedParam = (translate: () => unknown): string => {
  try {
    translate()
  } catch (error) {
    if (error instanceof Untranslatable) return error.param
    throw error
  }
  return assert.fail('it was translated')
}

describe('a web search', () => {
  const TO_ANTHROPIC: [what: string, made: Body, tools: Body[]][] = [
    ['of a chat', chat.translate({ web_search_options: {} }), [anthropic]],
    [
      'of a chat, near a place',
      chat.translate({ web_search_options: { search_context_size: 'low', user_location: chatPlace } }),
      [{ ...anthropic, user_location: place }],
    ],
    ...['web_search', 'web_search_preview', 'web_search_2025_08_26', 'web_search_preview_2025_03_11'].map(
      (type): [string, Body, Body[]] => [type, asMessages({ tools: [{ type }] }), [anthropic]],
    ),
    [
      'of a response, in domains and near a place',
      asMessages({
        tools: [{ type: 'web_search', filters: { allowed_domains: ['a.com'] }, user_location: place }],
      }),
      [{ ...anthropic, allowed_domains: ['a.com'], user_location: place }],
    ],
    [
      'of a response, outside of domains',
      asMessages({ tools: [{ type: 'web_search', filters: { blocked_domains: ['b.com'] } }] }),
      [{ ...anthropic, blocked_domains: ['b.com'] }],
    ],
    [
      'of Codex, beside a function',
      asMessages({
        tools: [
          { type: 'function', name: 'f', parameters: {} },
          { type: 'web_search', external_web_access: false },
        ],
      }),
      [{ name: 'f', input_schema: { type: 'object' } }, anthropic],
    ],
  ]
  for (const [what, { tools }, expected] of TO_ANTHROPIC) {
    it(`becomes Anthropic's: ${what}`, () => assert.deepEqual(tools, expected))
  }

  const TO_CHAT: [what: string, made: Body, options: Body][] = [
    ['of a message', message.translate({ tools: [{ ...anthropic, max_uses: 3 }] }), {}],
    [
      'of a message, of a later version',
      message.translate({ tools: [{ ...anthropic, type: 'web_search_20260209', user_location: place }] }),
      { user_location: chatPlace },
    ],
    [
      'of a response',
      asChat({ tools: [{ type: 'web_search', search_context_size: 'high', user_location: place }] }),
      { search_context_size: 'high', user_location: chatPlace },
    ],
  ]
  for (const [what, made, options] of TO_CHAT) {
    it(`becomes that of a chat: ${what}`, () => {
      assert.deepEqual(made.web_search_options, options)
      assert.equal(made.tools, undefined)
      assert.equal(made.tool_choice, undefined)
    })
  }

  it('can be chosen', () => {
    const { tool_choice: choice } = asMessages({
      tools: [{ type: 'web_search' }],
      tool_choice: { type: 'web_search' },
    })
    assert.deepEqual(choice, { type: 'tool', name: 'web_search' })
    const chosen = { tools: [tool('f'), anthropic], tool_choice: { type: 'tool', name: 'web_search' } }
    const functions = { ...chosen, tools: [{ name: 'f', input_schema: {} }, anthropic] }
    assert.equal(message.translate(functions).tool_choice, undefined)
    assert.equal(
      asChat({ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }).tool_choice,
      undefined,
    )
  })

  it('is refused with what would be left out of it, and named in the words of the caller', () => {
    assert.equal(
      message.refusedMember({ tools: [{ ...anthropic, allowed_domains: ['a.com'] }] }),
      'tools[0].allowed_domains',
    )
    const filters = { allowed_domains: ['a.com'] }
    assert.equal(
      refusedParam(() => asChat({ tools: [{ type: 'web_search', filters }] })),
      'tools[0].filters',
    )
    const both = { ...filters, blocked_domains: ['b.com'] }
    assert.equal(
      refusedParam(() => asMessages({ tools: [{ type: 'web_search', filters: both }] })),
      'tools',
    )
  })

  it('is left out, where members may be, for models of which nobody knows that they search', () => {
    const left: string[] = []
    const drop = { ...context, leaveOut: (param: string) => void left.push(param) }
    const functions = [{ name: 'f', input_schema: {} }]
    const tool_choice = { type: 'tool', name: 'web_search' }
    const direction = translationOf(messages, { protocol: 'openai' })
    for (const upstreamModel of ['m', 'gpt-4o-search-preview']) {
      const known = upstreamModel !== 'm'
      left.length = 0
      const search = [{ type: 'web_search', filters: {} }]
      const made = responsesAsChat.request(
        { model: 'm', input: 'hi', tools: search },
        { ...drop, upstreamModel },
      )
      assert.equal('web_search_options' in made, known)
      const body = { model: 'm', max_tokens: 5, messages: ask, tools: [...functions, anthropic], tool_choice }
      const chat = direction?.request(body, { ...drop, upstreamModel }) ?? {}
      assert.deepEqual(['web_search_options' in chat, 'tool_choice' in chat], [known, false])
      assert.deepEqual(left, known ? [] : ['tools[0]', 'tools[1]'])
    }
  })

  it('of an earlier turn does not stand in the way', () => {
    const call = { type: 'web_search_call', id: 'ws_resp_1_0', status: 'completed', action: {} }
    const input = [...ask, call, { role: 'assistant', content: 'It rains.' }, ...ask]
    assert.equal(objectsIn(asChat({ input }).messages).length, 3)
    assert.equal(objectsIn(asMessages({ input }).messages).length, 3)
    // Nor on the next line, which did not make it.
    assert.deepEqual(referencesIn({ input }), [])
    const cleaned = translationOf(responses, { protocol: 'anthropic' })?.withoutForeign({ input })
    assert.deepEqual(
      objectsIn(cleaned?.input).map(({ type }) => type),
      [undefined, undefined, undefined],
    )
    const turn = { role: 'assistant', content: [...SEARCHED, { type: 'text', text: 'It rains.' }] }
    const { messages: said } = message.translate({ messages: [...ask, turn, ...ask] })
    assert.deepEqual(objectsIn(said)[1], { role: 'assistant', content: 'It rains.' })
  })
})

const page = { url: 'https://a.com/w', title: 'Weather' }
const SEARCHED = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'rain rome' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [{ type: 'web_search_result', ...page, encrypted_content: 'x', page_age: null }],
  },
]
const cited = {
  type: 'web_search_result_location',
  ...page,
  encrypted_index: 'y',
  cited_text: 'Rain.',
}

describe('the answer to a web search', () => {
  const item = {
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'rain rome', queries: ['rain rome'] },
  }
  const withoutId = ({ id, ...rest }: JsonObject): JsonObject => {
    assert.match(String(id), /^ws_resp_/)
    return rest
  }

  it('is an item of a response, with the pages if they are asked for', () => {
    const content = [...SEARCHED, { type: 'text', text: 'It rains.', citations: [cited] }]
    const answer = { id: 'msg_1', model: 'm', content, stop_reason: 'end_turn' }
    const made = (request: JsonObject) =>
      responsesAsMessages.answer(answer, {}, { request, created: 5, estimatedInputTokens: 9 })
    const { body, skipped } = made({})
    const [search = {}, said = {}] = objectsIn(body.output)
    assert.deepEqual(withoutId(search), item)
    assert.equal(skipped, 0)
    assert.deepEqual(objectsIn(objectsIn(said.content)[0]?.annotations), [
      { type: 'url_citation', start_index: 0, end_index: 9, ...page },
    ])
    const [asked = {}] = objectsIn(made({ include: ['web_search_call.action.sources'] }).body.output)
    assert.ok(isJsonObject(asked.action))
    assert.deepEqual(asked.action.sources, [{ type: 'url', url: page.url }])
  })

  it('is an item of a streamed response', async () => {
    const [use, result] = SEARCHED
    const events = [
      messageEvent('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } }),
      messageEvent('content_block_start', { index: 0, content_block: { ...use, input: {} } }),
      ...['{"query":"rain', ' rome"}'].map((partial_json) =>
        messageEvent('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json } }),
      ),
      messageEvent('content_block_stop', { index: 0 }),
      messageEvent('content_block_start', { index: 1, content_block: result }),
      messageEvent('content_block_stop', { index: 1 }),
      messageEvent('content_block_start', { index: 2, content_block: { type: 'text', text: '' } }),
      messageEvent('content_block_delta', { index: 2, delta: { type: 'text_delta', text: 'It rains.' } }),
      messageEvent('content_block_delta', { index: 2, delta: { type: 'citations_delta', citation: cited } }),
      messageEvent('content_block_stop', { index: 2 }),
      messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
      messageEvent('message_stop'),
    ]
    const client = clientOn('anthropic', responsesAsMessages, events)
    const stream = client.responses.stream({ model: 'm', input: 'hi' })
    const types: string[] = []
    for await (const { type } of stream) types.push(type)
    const { output } = await stream.finalResponse()
    assert.deepEqual(
      output.map(({ type }) => type),
      ['web_search_call', 'message'],
    )
    assert.deepEqual(withoutId({ ...output[0] }), item)
    assert.ok(types.includes('response.web_search_call.completed'))
    assert.ok(types.includes('response.output_text.annotation.added'))
  })

  it('is no item of a chat', () => {
    const content = [...SEARCHED, { type: 'text', text: 'It rains.' }]
    const answer = { id: 'msg_1', model: 'm', content, stop_reason: 'end_turn' }
    const made = messageAsChatAnswer(answer, {}, { request: {}, created: 5, estimatedInputTokens: 9 })
    assert.doesNotMatch(JSON.stringify(made.body), /web_searches/)
    assert.equal(made.skipped, 2)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isJsonObject, type JsonObject, objectsIn } from '../../../lib/core/json/index.ts'
import { messages, referencesIn, responses } from '../../../lib/core/operations/index.ts'
import { messageAsChatAnswer } from '../../../lib/core/translate/chat-as-messages/answer.ts'
import { responsesAsChat, responsesAsMessages } from '../../../lib/core/translate/directions.ts'
import { translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import {
  anthropicSearch,
  isAnthropicSearch,
  isOpenAiSearch,
  searchOfMessage,
  searchOfResponse,
  takesSearch,
} from '../../../lib/core/translate/web-search.ts'
import { messageEvent } from '../../support/scripted-upstream.ts'
import { ANTHROPIC, ask, type Body, chat, message, OPENAI, tool } from './support/requests.ts'
import { clientOn } from './support/responses.ts'

const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
/** A model that searches, by its name. */
const SEARCHER = 'gpt-4o-search-preview'
const asChat = (body: JsonObject) =>
  responsesAsChat.request({ model: 'm', input: 'hi', ...body }, { ...context, upstreamModel: SEARCHER })
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
          { type: 'web_search', external_web_access: true },
        ],
      }),
      [{ name: 'f', input_schema: { type: 'object' } }, anthropic],
    ],
  ]
  for (const [what, { tools }, expected] of TO_ANTHROPIC) {
    it(`becomes Anthropic's: ${what}`, () => assert.deepEqual(tools, expected))
  }

  const TO_CHAT: [what: string, made: Body, options: Body][] = [
    ['of a message', message.translate({ tools: [{ ...anthropic, max_uses: 3 }] }, SEARCHER), {}],
    [
      'of a message, of a later version',
      message.translate(
        { tools: [{ ...anthropic, type: 'web_search_20260209', user_location: place }] },
        SEARCHER,
      ),
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
    assert.equal(message.translate(functions, SEARCHER).tool_choice, undefined)
    assert.equal(
      asChat({ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }).tool_choice,
      undefined,
    )
  })

  it('is refused with what would be left out of it, and named in the words of the caller', () => {
    assert.equal(
      message.refusedMember({ tools: [{ ...anthropic, allowed_domains: ['a.com'] }] }, SEARCHER),
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

  it('is refused by the name of its tool for models that are not known to search', () => {
    const offered: [from: typeof messages | typeof responses, type: string][] = [
      [messages, 'web_search_20250305'],
      [messages, 'web_search_20260209'],
      [responses, 'web_search'],
      [responses, 'web_search_preview_2025_03_11'],
    ]
    for (const [from, type] of offered)
      for (const upstreamModel of ['m', 'gpt-5.4', 'meta-llama/llama-4-scout']) {
        const functions =
          from === messages ? [{ name: 'f', input_schema: {} }] : [{ type: 'function', name: 'f' }]
        const tools = [...functions, { type, name: 'web_search' }]
        const asked = from === messages ? { max_tokens: 5, messages: ask } : { input: 'hi' }
        const json = { model: 'm', ...asked, tools }
        assert.throws(() => translationOf(from, OPENAI)?.request(json, { ...context, upstreamModel }), {
          name: 'Untranslatable',
          param: 'tools[1]',
          what: `the tool "${type}"`,
          dispensable: true,
        })
      }
  })

  it('of a provider’s stored pages becomes no live search on any line', () => {
    const offline = [{ type: 'web_search', external_web_access: false }]
    for (const line of [OPENAI, ANTHROPIC])
      for (const upstreamModel of ['m', SEARCHER, 'sonar-pro', 'claude-opus-5']) {
        const direction = translationOf(responses, line)
        const left: string[] = []
        const given = { ...context, upstreamModel }
        const body = { model: 'm', input: 'hi', tools: offline, tool_choice: { type: 'web_search' } }
        const dropped = direction?.request(body, { ...given, leaveOut: (param) => void left.push(param) })
        assert.deepEqual(left, ['tools[0]'])
        assert.doesNotMatch(JSON.stringify(dropped), /search/)
        assert.throws(() => direction?.request(body, given), {
          param: 'tools[0]',
          what: 'the tool "web_search"',
        })
      }
    const options = { external_web_access: false }
    assert.equal(chat.refusedMember({ web_search_options: options }), 'web_search_options')
  })

  it('is left out, if members may be, for models that are not known to search', () => {
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

  it('of an earlier turn is accepted', () => {
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

const FULL = { city: 'Rome', region: 'Lazio', country: 'IT', timezone: 'Europe/Rome' }
const ODD = { city: '', region: 7, country: null, other: 'x' }
const approximate = (place: object) => ({ user_location: { type: 'approximate', approximate: place } })
const plain = { type: 'web_search_20250305', name: 'web_search' }
const none = () => assert.fail('nothing is left out')

describe('the type of a web search', () => {
  const TYPES: [type: unknown, ofOpenAi: boolean, ofAnthropic: boolean][] = [
    ['web_search', true, false],
    ['web_search_preview', true, false],
    ['web_search_2025_08_26', true, false],
    ['web_search_preview_2025_03_11', true, false],
    ['web_search_20250305', false, true],
    ['web_search_previews', false, false],
    ['web_search_2025_08_26x', false, false],
    ['web_search_202503051', false, false],
    ['my_web_search', false, false],
    ['my_web_search_20250305', false, false],
    [['web_search'], false, false],
    [['web_search_20250305'], false, false],
    [undefined, false, false],
  ]
  for (const [type, ofOpenAi, ofAnthropic] of TYPES)
    it(`is OpenAI's, Anthropic's or neither: ${JSON.stringify(type)}`, () =>
      assert.deepEqual([isOpenAiSearch(type), isAnthropicSearch(type)], [ofOpenAi, ofAnthropic]))

  it('is sent to models that are known to search', () => {
    const models = ['m', 'gpt-4o-search-preview', 'sonar-pro', 'openai/gpt-4o:online']
    assert.deepEqual(models.map(takesSearch), [false, true, true, true])
  })
})

describe('the place and the domains of a web search', () => {
  it('are those of a response, as far as they say something', () => {
    const filters = { allowed_domains: ['a'], blocked_domains: ['b'], other: 1 }
    assert.deepEqual(searchOfResponse({ search_context_size: 'low', user_location: FULL, filters }), {
      search_context_size: 'low',
      ...approximate(FULL),
      filters: { allowed_domains: ['a'], blocked_domains: ['b'] },
    })
    for (const odd of [
      {},
      { search_context_size: 7, user_location: ODD, filters: { allowed_domains: [], blocked_domains: 'b' } },
      { user_location: 'Rome', filters: 'a' },
    ])
      assert.deepEqual(searchOfResponse(odd), {})
  })

  it('are those of a message, whose domains a chat has no word for', () => {
    assert.deepEqual(searchOfMessage({ user_location: FULL }, 'tools[0]', none), approximate(FULL))
    assert.deepEqual(searchOfMessage({ user_location: ODD, allowed_domains: [] }, 'tools[0]', none), {})
    const left: string[] = []
    searchOfMessage(
      { allowed_domains: ['a'], blocked_domains: ['b'] },
      'tools[0]',
      (param) => void left.push(param),
    )
    assert.deepEqual(left, ['tools[0].allowed_domains', 'tools[0].blocked_domains'])
  })

  it('are those that Anthropic takes: domains to search, or to leave out', () => {
    const made = (options: object) => anthropicSearch({ ...options }, none)
    assert.deepEqual(made({}), plain)
    assert.deepEqual(made(approximate(FULL)), { ...plain, user_location: { type: 'approximate', ...FULL } })
    for (const odd of [approximate(ODD), { user_location: FULL }, { user_location: 'x', filters: 'x' }])
      assert.deepEqual(made(odd), plain)
    const [allowed, blocked] = [{ allowed_domains: ['a'] }, { blocked_domains: ['b'] }]
    assert.deepEqual(made({ filters: { ...allowed, blocked_domains: [] } }), { ...plain, ...allowed })
    assert.deepEqual(made({ filters: { ...blocked, allowed_domains: [] } }), { ...plain, ...blocked })
    const left: string[] = []
    assert.deepEqual(
      anthropicSearch({ filters: { ...allowed, ...blocked } }, (param) => void left.push(param)),
      { ...plain, ...allowed },
    )
    assert.deepEqual(left, ['web_search_options.filters.blocked_domains'])
  })
})

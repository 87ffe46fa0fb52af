import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  anthropicSearch,
  asksForSearch,
  isAnthropicSearch,
  isOpenAiSearch,
  searchOfMessage,
  searchOfResponse,
} from '../../../lib/core/translate/requests/web-search.ts'
import { refuse } from '../../../lib/core/translate/translation.ts'

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

  it('is sent to models of which it is known, and to all where nothing may be left out', () => {
    const asks = (upstreamModel: string, leaveOut?: typeof refuse) =>
      asksForSearch({ upstreamModel, defaultMaxTokens: 1, ...(leaveOut && { leaveOut }) })
    assert.deepEqual([asks('m'), asks('m', refuse)], [true, true])
    const models = ['m', 'gpt-4o-search-preview', 'sonar-pro', 'openai/gpt-4o:online']
    assert.deepEqual(
      models.map((model) => asks(model, none)),
      [false, true, true, true],
    )
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

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions } from '../../../../lib/core/operations/chat/chat-completions.ts'
import {
  isChargedSearch,
  mostChatSearches,
  mostWebSearches,
  unsaidSearches,
} from '../../../../lib/core/operations/metering/web-searches.ts'

describe('the web searches that a request may come to', () => {
  it('are limited by its tools, else by the limit of all tool calls, else ten', () => {
    const search = { type: 'web_search_20260209', name: 'web_search' }
    const rows: [tools: unknown, limit: unknown, most: number][] = [
      [undefined, undefined, 0],
      [[], 5, 0],
      [[{ type: 'custom', name: 'web_search' }, { name: 'mine' }, { type: 'code_execution' }], 5, 0],
      [[search], undefined, 10],
      [[{ ...search, max_uses: 3 }], undefined, 3],
      [[{ ...search, max_uses: null }], undefined, 10],
      [[{ ...search, max_uses: -1 }], undefined, 10],
      [[{ type: 'web_search' }], 4, 4],
      [[{ type: 'web_search_preview' }], null, 10],
      [[{ ...search, max_uses: 2 }, { type: 'web_search' }], undefined, 12],
    ]
    for (const [tools, limit, most] of rows)
      assert.equal(mostWebSearches(tools, limit), most, JSON.stringify([tools, limit]))
  })

  it('are requested by a member of a chat, or by a tool', () => {
    assert.deepEqual(
      [
        mostChatSearches({}),
        mostChatSearches({ web_search_options: null }),
        mostChatSearches({ web_search_options: {} }),
        mostChatSearches({ tools: [{ type: 'web_search', web_search: { enable: true } }] }),
        mostChatSearches({ tools: [{ type: 'function', function: { name: 'web_search' } }] }),
      ],
      [0, 0, 10, 10, 0],
    )
  })

  it('are none if the member disables them, with or without a function beside it', () => {
    const of = (more: object): number | undefined => {
      const body = { messages: [{ role: 'user', content: 'hello' }], web_search_options: false, ...more }
      return chatCompletions.facts(body, Buffer.from(JSON.stringify(body)), () => 1).webSearches
    }
    const own = { type: 'function', function: { name: 'mine' } }
    assert.deepEqual([of({}), of({ tools: [own] }), of({ tools: [own, { type: 'web_search' }] })], [0, 0, 10])
  })
})

describe('the web searches of an answer that reports no number', () => {
  it('are one if the model always searches, and none if it was given a tool', () => {
    const messages = [{ role: 'user', content: 'the news' }]
    const tool = { type: 'web_search', web_search: { enable: true } }
    assert.deepEqual(
      [
        unsaidSearches({ messages, web_search_options: {} }),
        unsaidSearches({ messages, web_search_options: {}, tools: [tool] }),
        unsaidSearches({ messages, tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
        unsaidSearches({ input: 'the news', tools: [{ type: 'web_search' }] }),
        unsaidSearches({ messages, tools: [tool] }),
      ],
      [1, 1, 1, 1, 0],
    )
  })
})

describe('a web search among the items of a response', () => {
  it('is charged, but not a failed one or an opened page', () => {
    const item = { type: 'web_search_call', status: 'completed' }
    assert.equal(isChargedSearch(item), true)
    assert.equal(isChargedSearch({ ...item, action: { type: 'search', query: 'news' } }), true)
    assert.equal(isChargedSearch({ ...item, status: 'failed' }), false)
    for (const type of ['open_page', 'find_in_page', 'find'])
      assert.equal(isChargedSearch({ ...item, action: { type } }), false)
    assert.equal(isChargedSearch({ ...item, type: 'file_search_call' }), false)
  })
})

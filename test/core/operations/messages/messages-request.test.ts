import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import { messageFacts } from '../../../../lib/core/operations/messages/messages.ts'

type Json = Record<string, unknown>

const PER_REQUEST = 3
const PER_MESSAGE = 4
const PER_IMAGE = 1200
const PER_FILE = 4000

/** The facts of a body whose texts are as many tokens as they have characters. */
function factsOf(members: Json) {
  const json = { model: 'm', max_tokens: 5, messages: [], ...members }
  return messageFacts(json, Buffer.from(JSON.stringify(json)), (text) => text.length)
}

describe('the count of a block of a message', () => {
  const document = (source: unknown, more: Json = {}) => ({ type: 'document', source, ...more })
  const searched = (content: unknown) => ({ type: 'web_search_tool_result', content })
  const sealed = 'x'.repeat(100)
  const rows: [what: string, block: Json, tokens: number][] = [
    ['a text', { type: 'text', text: 'hello' }, 5],
    ['a text of another type', { type: 'other', text: 'hello' }, 5],
    ['an image', { type: 'image', source: {} }, PER_IMAGE],
    ['thinking', { type: 'thinking', thinking: 'hmm' }, 3],
    ['thinking that is not there', { type: 'thinking' }, PER_FILE],
    ['thinking of another type', { type: 'other', thinking: 'hmm' }, PER_FILE],
    ['the use of a tool', { type: 'tool_use', input: { a: 1 } }, '{"a":1}'.length],
    ['the result of a tool, as a text', { type: 'tool_result', content: 'done' }, 4],
    ['the result of a tool, that is nothing', { type: 'tool_result' }, 0],
    [
      'the result of a tool, of blocks',
      {
        type: 'tool_result',
        content: [
          { type: 'text', text: 'ab' },
          { type: 'image' },
          { type: 'tool_result', content: 'no' },
          'no',
          null,
        ],
      },
      2 + PER_IMAGE,
    ],
    ['a file', document({ type: 'base64', data: sealed }), PER_FILE],
    ['a text of a document', document({ type: 'text', data: 'hello' }), 5],
    ['a text of a document that is not there', document({ type: 'text' }), PER_FILE],
    ['a document of a text', document({ type: 'content', content: 'hello' }), 5],
    [
      'a document of blocks',
      document({ type: 'content', content: [{ type: 'text', text: 'hello' }, { type: 'image' }] }),
      'text'.length + 5 + PER_IMAGE,
    ],
    ['a document without a source', document(null), PER_FILE],
    [
      'a file with a title and a context',
      document({ type: 'url' }, { title: 'to', context: 'me' }),
      PER_FILE + 4,
    ],
    ['a file with a text beside it', document({ type: 'url' }, { content: 'hello' }), PER_FILE + 5],
    ['a file that names a content', document({ type: 'file', content: 'hello' }), PER_FILE],
    [
      'a search result',
      { type: 'search_result', source: 'https://x', content: [{ type: 'text', text: 'hello' }] },
      'text'.length + 5,
    ],
    [
      'results of a search that are sealed',
      searched([{ title: 'hello', encrypted_content: sealed }]),
      5 + 20,
    ],
    ['a search that failed', searched({ error_code: 'max_uses' }), 'max_uses'.length],
    ['no results of a search', searched([]), 0],
    ['thinking that is sealed', { type: 'redacted_thinking', data: sealed }, 20],
    ['the use of a tool of the upstream', { type: 'server_tool_use', input: { a: 1 } }, '{"a":1}'.length],
    ['the use of a tool of an MCP server', { type: 'mcp_tool_use', input: { a: 1 } }, '{"a":1}'.length],
    ['a file in a container', { type: 'container_upload', file_id: 'file_1' }, PER_FILE],
  ]
  for (const [what, block, tokens] of rows)
    it(`is ${tokens} for ${what}`, () => {
      const { estimatedInputTokens, images } = factsOf({ messages: [{ role: 'user', content: [block] }] })
      const counted = estimatedInputTokens - PER_REQUEST - PER_MESSAGE
      assert.equal(counted, tokens)
      assert.equal(images, JSON.stringify(block).includes('"image"') ? 1 : 0)
    })

  it('is named by the first place of an image', () => {
    const image = { type: 'image' }
    const result = { type: 'tool_result', content: [{ type: 'text', text: '' }, image] }
    const text = { type: 'text', text: '' }
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'user', content: [text, result, image] },
    ]
    const { featureParams, images } = factsOf({ messages })
    assert.deepEqual([...featureParams], [['vision', 'messages[1].content[1].content[1]']])
    assert.equal(images, 2)
  })
})

describe('the output that a request for a message asks for', () => {
  const rows: [members: Json, features: [string, string][], tokens: number][] = [
    [{}, [], 0],
    [{ stream: true }, [['stream', 'stream']], 0],
    [{ stream: false }, [], 0],
    [{ tools: [] }, [], 0],
    [{ tools: [{ name: 'f' }] }, [['tools', 'tools']], '[{"name":"f"}]'.length],
    [{ thinking: { type: 'enabled' } }, [['reasoning', 'thinking']], 0],
    [{ thinking: { type: 'disabled' } }, [], 0],
    [{ output_config: { effort: 'low' } }, [], 0],
    [{ output_config: { format: {} } }, [['json', 'output_config.format']], '{"format":{}}'.length],
    [{ system: 'be brief' }, [], 8],
    [{ system: [{ type: 'text', text: 'be' }] }, [], 2],
  ]
  for (const [members, features, tokens] of rows)
    it(`is returned for ${JSON.stringify(members)}`, () => {
      const facts = factsOf(members)
      assert.deepEqual([...facts.featureParams], features)
      assert.deepEqual(
        [...facts.features],
        features.map(([feature]) => feature),
      )
      assert.equal(facts.estimatedInputTokens, PER_REQUEST + tokens)
      assert.equal(facts.stream, members.stream === true)
      assert.equal(facts.tools, Array.isArray(members.tools) ? members.tools.length : 0)
      assert.deepEqual([facts.model, facts.maxOutputTokens, facts.answers, facts.messages], ['m', 5, 1, 0])
    })
})

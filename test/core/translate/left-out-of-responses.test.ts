import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ANTHROPIC, input, OPENAI, ofResponse, refused } from './dropping.ts'
import type { Body } from './requests.ts'

describe('where members may be left out, a response', () => {
  const LEFT: [body: Body, left: unknown[]][] = [
    [{ store: true, something_new: 1 }, ['store', 'something_new']],
    [{ tools: [{ type: 'file_search' }] }, [['tools[0]', 'the tool "file_search"']]],
    [{ tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'mcp' } }, ['tool_choice']],
    [
      input({
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', file_id: 'f' },
        ],
      }),
      ['input[0].content[1]'],
    ],
    ...[
      'mcp_call',
      'mcp_list_tools',
      'file_search_call',
      'code_interpreter_call',
      'image_generation_call',
      'tool_search_call',
    ].map((type): [Body, unknown[]] => [
      input({ role: 'user', content: 'a' }, { type }),
      [['input[1]', `the item "${type}"`]],
    ]),
  ]
  for (const [body, left] of LEFT)
    it(`does without ${JSON.stringify(left)}`, () => {
      assert.deepEqual(ofResponse(body).left, left)
      assert.deepEqual(ofResponse(body, ANTHROPIC).left, left)
    })

  it('names what its chat cannot say by its own words', () => {
    const format = { text: { format: { type: 'grammar' } } }
    assert.deepEqual(ofResponse(format, ANTHROPIC).left, ['text.format'])
    const filters = { allowed_domains: ['a'], blocked_domains: ['b'] }
    const { left, made } = ofResponse({ tools: [{ type: 'web_search', filters }] }, ANTHROPIC)
    assert.deepEqual(left, ['tools'])
    assert.deepEqual(made.tools, [
      { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['a'] },
    ])
  })

  it('is refused all the same without what it is about', () => {
    const rows: [param: string, body: Body, what?: string][] = [
      ['previous_response_id', { previous_response_id: 'r' }],
      ['instructions', { instructions: ['a'] }],
      ['input[0]', input({ type: 'item_reference', id: 'a' }), 'the item "item_reference"'],
      ['input[0]', input({ type: `x${'y'.repeat(70)}` }), `the item "x${'y'.repeat(63)}"`],
      ['input[0]', input({ type: 'file_search_call_output' }), 'the item "file_search_call_output"'],
      ['input[0]', input({ type: 'custom_tool_call' }), 'the item "custom_tool_call"'],
      ['input[1]', input({ role: 'user', content: 'a' }, 'x')],
      ['input[0].content', input({ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] })],
    ]
    for (const [param, body, what] of rows)
      for (const line of [OPENAI, ANTHROPIC])
        assert.deepEqual(
          refused(() => ofResponse(body, line)),
          [param, what],
        )
  })
})

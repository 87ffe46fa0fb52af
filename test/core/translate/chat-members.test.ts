import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Body, chat, tool, user } from './requests.ts'

describe('a member of a chat request', () => {
  const ROWS: [what: string, given: Body, made: Body][] = [
    ['no limit of the output', {}, { max_tokens: 2000 }],
    ['max_tokens', { max_tokens: 7 }, { max_tokens: 7 }],
    [
      'max_completion_tokens before max_tokens',
      { max_completion_tokens: 8, max_tokens: 7 },
      { max_tokens: 8 },
    ],
    ['a temperature in range', { temperature: 0.4 }, { temperature: 0.4 }],
    ['a temperature beyond the range', { temperature: 1.7 }, { temperature: 1 }],
    ['top_p', { top_p: 0.3 }, { top_p: 0.3 }],
    ['temperature and top_p', { temperature: 0, top_p: 0.3 }, { temperature: 0, top_p: undefined }],
    ['top_k', { top_k: 5 }, { top_k: 5 }],
    ['one stop sequence', { stop: 'END' }, { stop_sequences: ['END'] }],
    ['several stop sequences', { stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    ['no stop sequence', { stop: [] }, { stop_sequences: undefined }],
    ['user', { user: 'u1', safety_identifier: 's1' }, { metadata: { user_id: 'u1' } }],
    ['safety_identifier', { safety_identifier: 's1' }, { metadata: { user_id: 's1' } }],
    ['service_tier auto', { service_tier: 'auto' }, { service_tier: 'auto' }],
    ['service_tier priority', { service_tier: 'priority' }, { service_tier: 'auto' }],
    ['service_tier default', { service_tier: 'default' }, { service_tier: 'standard_only' }],
    ['service_tier flex', { service_tier: 'flex' }, { service_tier: 'standard_only' }],
    [
      'stream',
      { stream: true, stream_options: { include_usage: true } },
      { stream: true, stream_options: undefined },
    ],
    ['stream: false', { stream: false }, { stream: undefined }],
    ['cache_control', { cache_control: { type: 'ephemeral' } }, { cache_control: { type: 'ephemeral' } }],
    ['plain text as the format', { response_format: { type: 'text' } }, { output_config: undefined }],
    [
      'a schema as the format',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'n', schema: { type: 'object' }, strict: true },
        },
      },
      {
        output_config: {
          format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
        },
      },
    ],
    ...['json_object', 'json_schema'].map((type): [string, Body, Body] => [
      `a schema in a format of the type ${type}, as Together has it`,
      { response_format: { type, schema: { type: 'object' } } },
      {
        output_config: {
          format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
        },
      },
    ]),
    [
      'what is neutral',
      { n: 1, frequency_penalty: 0, presence_penalty: 0, logit_bias: {}, logprobs: false },
      {},
    ],
    [
      'what LangChain sends to Mistral',
      { temperature: 0.7, top_p: 1, safe_prompt: false, random_seed: 1 },
      { temperature: 0.7, top_p: undefined, safe_prompt: undefined, random_seed: undefined },
    ],
    [
      'what makes nothing other',
      { seed: 1, store: true, metadata: { a: 'b' }, prompt_cache_key: 'k', verbosity: 'low' },
      {},
    ],
    [
      'nulls',
      { stop: null, tools: null, n: null, audio: null, tool_choice: null, reasoning_effort: null },
      {},
    ],
  ]
  for (const [what, given, made] of ROWS) {
    it(`is translated: ${what}`, () => {
      const expected = { model: 'chat', max_tokens: 2000, messages: [user('hi')], ...made }
      assert.deepEqual(chat.translate(given), JSON.parse(JSON.stringify(expected)))
    })
  }

  for (const id of ['ann@example.com', '+49 (30) 123-4567', '00493012345', 'u'.repeat(257)]) {
    it(`is translated: the user ${id.slice(0, 20)}, whom Anthropic refuses, to the same opaque id each time`, () => {
      const { metadata } = chat.translate({ user: id })
      assert.match(String((metadata as { user_id?: unknown }).user_id), /^[0-9a-f]{64}$/)
      assert.deepEqual(chat.translate({ safety_identifier: id }).metadata, metadata)
    })
  }

  for (const id of ['42', 'ann', '123e4567-e89b-12d3-a456-426614174000', 'u'.repeat(256)]) {
    it(`is translated: the user ${id.slice(0, 20)}, as it is`, () =>
      assert.deepEqual(chat.translate({ user: id }).metadata, { user_id: id }))
  }

  const SAMPLING: [model: string, made: Body][] = [
    ['claude-sonnet-4-6', { temperature: 0.4, top_k: 5 }],
    ['claude-opus-4-5-20251101', { temperature: 0.4, top_k: 5 }],
    ['claude-opus-4-20250514', { temperature: 0.4, top_k: 5 }],
    ['other', { temperature: 0.4, top_k: 5 }],
    ['claude-opus-4-7', {}],
    ['us.anthropic.claude-opus-4-8', {}],
    ['anthropic/claude-opus-4.7', {}],
    ['anthropic/claude-opus-4.6', { temperature: 0.4, top_k: 5 }],
    ['claude-sonnet-5', {}],
    ['claude-fable-5-1', {}],
  ]
  for (const [model, made] of SAMPLING) {
    it(`is translated: how ${model} picks its words`, () => {
      const { temperature, top_p, top_k } = chat.translate({ temperature: 0.4, top_k: 5 }, model)
      assert.deepEqual(
        { temperature, top_p, top_k },
        { temperature: undefined, top_p: undefined, top_k: undefined, ...made },
      )
    })
  }

  const REFUSED: [member: string, given: Body][] = [
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['logit_bias', { logit_bias: { 1: 5 } }],
    ['frequency_penalty', { frequency_penalty: 0.5 }],
    ['safe_prompt', { safe_prompt: true }],
    ['presence_penalty', { presence_penalty: -1 }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['web_search_options', { web_search_options: {}, tools: [tool('web_search')] }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: { name: 'f' } }],
    ['stop', { stop: ['\n'] }],
    ['response_format', { response_format: { type: 'grammar' } }],
    ['response_format', { response_format: { type: 'json_schema', json_schema: { name: 'n' } } }],
    ['tools[1]', { tools: [tool('f'), { type: 'custom', custom: { name: 'g' } }] }],
    ['tool_choice', { tools: [tool('f')], tool_choice: { type: 'custom', custom: { name: 'g' } } }],
    ['guided_regex', { guided_regex: 'a+' }],
    ['__proto__', JSON.parse('{"__proto__":{}}')],
  ]
  for (const [member, given] of REFUSED) {
    it(`is refused: ${member} of ${JSON.stringify(given)}`, () => {
      assert.equal(chat.refusedMember(given), member)
    })
  }
})

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { estimateTokens } from '../../lib/operations/token-estimate.ts'
import {
  ANTHROPIC,
  ANTHROPIC_STREAM,
  exchange,
  gatewayFor,
  type Mode,
  modeName,
  OPENAI,
  OPENAI_STREAM,
} from '../support/exchange.ts'
import {
  chatAnswer,
  chatChunk,
  messageAnswer,
  messageEvent,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../support/scripted-upstream.ts'

const TEXT = 'The quick brown fox jumps over the lazy dog.'
const TOKENS = estimateTokens(TEXT)

const chatStream =
  (usage?: object): UpstreamScript =>
  (res) =>
    stream(res, [
      chatChunk({ content: TEXT }),
      chatChunk({}, 'stop'),
      ...(usage ? [`data: ${JSON.stringify({ choices: [], usage })}\n\n`] : []),
      'data: [DONE]\n\n',
    ])
const messageStream =
  (atStart?: object, atEnd?: object): UpstreamScript =>
  (res) =>
    stream(res, [
      messageEvent('message_start', { message: { type: 'message', usage: atStart } }),
      messageEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TEXT } }),
      messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: atEnd }),
      messageEvent('message_stop'),
    ])

interface Row {
  name: string
  mode: Mode
  script: UpstreamScript
  /** Input, cached, written to the cache, output; null stands for the estimate of the input. */
  tokens: [number | null, number, number, number]
  source: 'measured' | 'estimated'
}

const ROWS: Row[] = [
  {
    name: 'as reported',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: 100, completion_tokens: 7 } }),
    tokens: [100, 0, 0, 7],
    source: 'measured',
  },
  {
    name: 'with cached tokens, which are part of the input',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, TEXT, {
        usage: { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 } },
      }),
    tokens: [100, 60, 0, 7],
    source: 'measured',
  },
  {
    name: 'with cached tokens',
    mode: OPENAI_STREAM,
    script: chatStream({
      prompt_tokens: 100,
      completion_tokens: 7,
      prompt_tokens_details: { cached_tokens: 60 },
    }),
    tokens: [100, 60, 0, 7],
    source: 'measured',
  },
  {
    name: 'zero, which is never replaced',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: 0, completion_tokens: 0 } }),
    tokens: [0, 0, 0, 0],
    source: 'measured',
  },
  {
    name: 'zero, which is never replaced',
    mode: OPENAI_STREAM,
    script: chatStream({ prompt_tokens: 0, completion_tokens: 0 }),
    tokens: [0, 0, 0, 0],
    source: 'measured',
  },
  {
    name: 'absent: estimated',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: undefined }),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'null: estimated',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: null }),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'half there: the rest estimated',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: 41 } }),
    tokens: [41, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'nonsense: estimated',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: { prompt_tokens: -3, completion_tokens: '12' } }),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'absent: estimated',
    mode: OPENAI_STREAM,
    script: chatStream(),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'with what was read from and written to the cache, which is added to the input',
    mode: ANTHROPIC,
    script: (res) =>
      messageAnswer(res, TEXT, {
        usage: {
          input_tokens: 30,
          cache_read_input_tokens: 60,
          cache_creation_input_tokens: 10,
          output_tokens: 7,
        },
      }),
    tokens: [100, 60, 10, 7],
    source: 'measured',
  },
  {
    name: 'the input at the start and the output at the end',
    mode: ANTHROPIC_STREAM,
    script: messageStream(
      { input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10, output_tokens: 1 },
      { output_tokens: 9 },
    ),
    tokens: [100, 60, 10, 9],
    source: 'measured',
  },
  {
    name: 'zero, which is never replaced',
    mode: ANTHROPIC_STREAM,
    script: messageStream({ input_tokens: 0, output_tokens: 0 }, { output_tokens: 0 }),
    tokens: [0, 0, 0, 0],
    source: 'measured',
  },
  {
    name: 'absent: estimated',
    mode: ANTHROPIC,
    script: (res) => messageAnswer(res, TEXT, { usage: undefined }),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'absent: estimated',
    mode: ANTHROPIC_STREAM,
    script: messageStream(),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
]

describe('the usage of a completed call', async () => {
  const upstream = await startUpstream()
  after(() => upstream.close())
  for (const { name, mode, script, tokens, source } of ROWS) {
    it(`is ${name} (${modeName(mode)})`, async (t) => {
      upstream.script = script
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: mode.protocol }] })
      const got = await exchange(gateway, mode)
      assert.equal(got.status, 200)
      const { usage, request } = await gateway.entry(got.requestId)
      assert.ok(request && request.estimated_input_tokens > 0)
      const [input, cached, written, output] = tokens
      assert.deepEqual(usage, {
        input_tokens: input ?? request.estimated_input_tokens,
        cached_input_tokens: cached,
        cache_write_tokens: written,
        output_tokens: output,
        source,
      })
    })
  }
})

import { ANTHROPIC, ANTHROPIC_STREAM, OPENAI, OPENAI_STREAM } from '../../../support/exchange.ts'
import { chatAnswer, messageAnswer } from '../../../support/scripted-upstream.ts'
import {
  chatStream,
  describeUsage,
  type MeteredRow,
  messageStream,
  TEXT,
  TOKENS,
} from '../support/metered-rows.ts'

const ROWS: MeteredRow[] = [
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

describeUsage('the usage of a completed call', ROWS)

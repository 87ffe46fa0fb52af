import { ANTHROPIC, ANTHROPIC_STREAM, OPENAI, OPENAI_STREAM } from '../../../support/exchange.ts'
import { chatAnswer, chatChunk, messageAnswer, stream } from '../../../support/scripted-upstream.ts'
import {
  chatStream,
  describeUsage,
  type MeteredRow,
  messageStream,
  TEXT,
  TOKENS,
  usageChunk,
} from '../support/metered-rows.ts'

const DONE = 'data: [DONE]\n\n'
const counts = (prompt: unknown, completion: unknown, extra: object = {}) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  ...extra,
})
const cached = (tokens: unknown) => ({ prompt_tokens_details: { cached_tokens: tokens } })

const WHEN: MeteredRow[] = [
  {
    name: 'what comes before the finish reason, where nothing follows',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [chatChunk({ content: TEXT }), usageChunk(counts(100, 7)), chatChunk({}, 'stop'), DONE]),
    tokens: [100, 0, 0, 7],
    source: 'measured',
  },
  {
    name: 'what comes with the finish reason',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [
        chatChunk({ content: TEXT }),
        chatChunk({}, 'stop', { usage: counts(100, 7, cached(60)) }),
        DONE,
      ]),
    tokens: [100, 60, 0, 7],
    source: 'measured',
  },
  {
    name: 'the last of those in every chunk',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [
        chatChunk({ content: 'The quick' }, null, { usage: counts(100, 2) }),
        chatChunk({ content: ' brown fox' }, null, { usage: counts(100, 4) }),
        chatChunk({}, 'stop', { usage: counts(100, 5) }),
        DONE,
      ]),
    tokens: [100, 0, 0, 5],
    source: 'measured',
  },
  {
    name: 'estimated from the last report on, where the line dies between finish reason and usage',
    mode: OPENAI_STREAM,
    script: async (res) => {
      const running = { usage: counts(100, 3) }
      const events = [
        chatChunk({ content: 'x' }, null, running),
        chatChunk({ content: TEXT }),
        chatChunk({}, 'stop'),
      ]
      await stream(res, events, { end: false })
      res.socket?.end()
    },
    tokens: [100, 0, 0, 3 + TOKENS],
    source: 'estimated',
  },
  {
    name: 'estimated where the line dies between finish reason and usage',
    mode: OPENAI_STREAM,
    script: async (res) => {
      await stream(res, [chatChunk({ content: TEXT }), chatChunk({}, 'stop')], { end: false })
      res.socket?.end()
    },
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'estimated where only zeros come before the finish reason',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [
        chatChunk({ content: TEXT }, null, { usage: counts(100, 0) }),
        chatChunk({}, 'stop', { usage: null }),
        DONE,
      ]),
    tokens: [100, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'all at the end, behind zeros at the start',
    mode: ANTHROPIC_STREAM,
    script: messageStream(
      { input_tokens: 0, output_tokens: 0 },
      { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 9 },
    ),
    tokens: [100, 60, 0, 9],
    source: 'measured',
  },
  {
    name: 'with the cached input of the start, where the end repeats only the rest',
    mode: ANTHROPIC_STREAM,
    script: messageStream(
      { input_tokens: 30, cache_read_input_tokens: 60, cache_creation_input_tokens: 10, output_tokens: 1 },
      { input_tokens: 30, output_tokens: 9 },
    ),
    tokens: [100, 60, 10, 9],
    source: 'measured',
  },
  {
    name: 'the input of the start, and an estimate where the end has no output',
    mode: ANTHROPIC_STREAM,
    script: messageStream({ input_tokens: 40, output_tokens: 5 }, null),
    tokens: [40, 0, 0, TOKENS],
    source: 'estimated',
  },
]

const FAULTS: MeteredRow[] = [
  ...[-3, '12', 3.5, 1e300, 2 ** 60, null, [5], true].flatMap((odd): MeteredRow[] => [
    {
      name: `estimated for a count of ${JSON.stringify(odd)}`,
      mode: OPENAI,
      script: (res) => chatAnswer(res, TEXT, { usage: counts(odd, odd, cached(odd)) }),
      tokens: [null, 0, 0, TOKENS],
      source: 'estimated',
    },
    {
      name: `estimated for a count of ${JSON.stringify(odd)}`,
      mode: ANTHROPIC_STREAM,
      script: messageStream(
        { input_tokens: odd, cache_creation_input_tokens: odd, output_tokens: 1 },
        { output_tokens: odd },
      ),
      tokens: [null, 0, 0, TOKENS],
      source: 'estimated',
    },
  ]),
  {
    name: 'at most all of the input cached',
    mode: OPENAI,
    script: (res) => chatAnswer(res, TEXT, { usage: counts(100, 7, cached(900)) }),
    tokens: [100, 100, 0, 7],
    source: 'measured',
  },
  {
    name: 'at least what was read from the cache, where no other input is reported',
    mode: ANTHROPIC,
    script: (res) => messageAnswer(res, TEXT, { usage: { cache_read_input_tokens: 900, output_tokens: 7 } }),
    tokens: [900, 900, 0, 7],
    source: 'estimated',
  },
  {
    name: 'as reported, a count that is a fault beside it notwithstanding',
    mode: OPENAI_STREAM,
    script: chatStream(counts(100, 7, { total_tokens: 'many', completion_tokens_details: 'none' })),
    tokens: [100, 0, 0, 7],
    source: 'measured',
  },
]

describeUsage('the usage of a stream, whenever it is reported,', WHEN)
describeUsage('the usage of a call whose upstream reports nonsense', FAULTS)

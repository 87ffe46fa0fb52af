import { ANTHROPIC, OPENAI, OPENAI_STREAM } from '../../../support/exchange.ts'
import { chatAnswer, chatChunk, messageAnswer, stream } from '../../../support/scripted-upstream.ts'
import { chatStream, describeUsage, type MeteredRow, TEXT, TOKENS } from '../support/metered-rows.ts'

const DONE = 'data: [DONE]\n\n'
const counts = (prompt: unknown, completion: unknown, extra: object = {}) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  ...extra,
})
const OUTPUTS: MeteredRow[] = [
  {
    name: 'with reasoning that is part of the output',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, TEXT, {
        usage: counts(15, 78, { total_tokens: 93, completion_tokens_details: { reasoning_tokens: 64 } }),
      }),
    tokens: [15, 0, 0, 78],
    source: 'measured',
    parts: { reasoning_tokens: 64 },
  },
  {
    name: 'with reasoning that is reported beside the output',
    mode: OPENAI_STREAM,
    script: chatStream(
      counts(15, 14, { total_tokens: 93, completion_tokens_details: { reasoning_tokens: 64 } }),
    ),
    tokens: [15, 0, 0, 78],
    source: 'measured',
    parts: { reasoning_tokens: 64 },
  },
  {
    name: 'that of all answers asked for',
    mode: OPENAI,
    extra: { n: 2 },
    script: (res) =>
      chatAnswer(res, TEXT, {
        choices: [0, 1].map((index) => ({ index, message: { content: TEXT }, finish_reason: 'stop' })),
        usage: undefined,
      }),
    tokens: [null, 0, 0, 2 * TOKENS],
    source: 'estimated',
  },
  {
    name: 'the output up to a content filter',
    mode: OPENAI_STREAM,
    script: (res) => stream(res, [chatChunk({ content: TEXT }), chatChunk({}, 'content_filter'), DONE]),
    tokens: [null, 0, 0, TOKENS],
    source: 'estimated',
  },
  {
    name: 'that of a refusal',
    mode: OPENAI,
    script: (res) =>
      chatAnswer(res, '', {
        choices: [{ index: 0, message: { content: null, refusal: TEXT }, finish_reason: 'stop' }],
        usage: counts(100, 7),
      }),
    tokens: [100, 0, 0, 7],
    source: 'measured',
  },
  {
    name: 'the input of a refusal without text',
    mode: ANTHROPIC,
    script: (res) =>
      messageAnswer(res, '', {
        content: [],
        stop_reason: 'refusal',
        usage: { input_tokens: 90, output_tokens: 0 },
      }),
    tokens: [90, 0, 0, 0],
    source: 'measured',
  },
  {
    name: 'that of a tool call without text',
    mode: OPENAI_STREAM,
    script: (res) =>
      stream(res, [
        chatChunk({ tool_calls: [{ index: 0, function: { name: 'weather', arguments: '' } }] }),
        chatChunk({ tool_calls: [{ index: 0, function: { arguments: TEXT } }] }),
        chatChunk({}, 'tool_calls'),
        DONE,
      ]),
    tokens: [null, 0, 0, 1 + TOKENS],
    source: 'estimated',
  },
]

describeUsage('the usage of an answer of any kind', OUTPUTS)

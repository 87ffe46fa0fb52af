import { ANTHROPIC, ANTHROPIC_STREAM, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { testOutcomes } from '../../support/outcome-row.ts'
import {
  chatAnswer,
  chatChunk,
  messageAnswer,
  messageEvent,
  messageEvents,
  stream,
} from '../../support/scripted-upstream.ts'

const empty = { code: 'empty_completion', upstreamStatus: 200, failsOver: true, blames: false } as const
const filtered = { code: 'content_filtered', upstreamStatus: 200, failsOver: false, blames: false } as const
const choice = (message: object | null, finish_reason: string) => ({
  choices: [{ index: 0, message, finish_reason }],
})
const role = chatChunk({ role: 'assistant', content: '' })
const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 0 } })}\n\n`
const done = 'data: [DONE]\n\n'

testOutcomes('a line that answers 200 without output', [
  { does: 'says nothing', script: (res) => chatAnswer(res, ''), ...empty, modes: [OPENAI] },
  {
    does: 'has null for its text',
    script: (res) => chatAnswer(res, '', choice({ role: 'assistant', content: null }, 'stop')),
    ...empty,
    modes: [OPENAI],
  },
  {
    does: 'has no message',
    script: (res) => chatAnswer(res, '', choice(null, 'stop')),
    ...empty,
    modes: [OPENAI],
  },
  {
    does: 'has lost a malformed tool call, as Gemini does',
    script: (res) =>
      chatAnswer(res, '', choice({ role: 'assistant' }, 'function_call_filter: MALFORMED_FUNCTION_CALL')),
    ...empty,
    modes: [OPENAI],
  },
  {
    does: 'has no choices',
    script: (res) => chatAnswer(res, '', { choices: [] }),
    ...empty,
    modes: [OPENAI],
  },
  {
    does: 'has no content',
    script: (res) => messageAnswer(res, '', { content: [] }),
    ...empty,
    modes: [ANTHROPIC],
  },
  { does: 'has an empty text block', script: (res) => messageAnswer(res, ''), ...empty, modes: [ANTHROPIC] },
  {
    does: 'streams the role and the finish reason',
    script: (res) => stream(res, [role, chatChunk({}, 'stop'), usage, done]),
    ...empty,
    modes: [OPENAI_STREAM],
  },
  {
    does: 'streams the loss of a malformed tool call, as Gemini does',
    script: (res) =>
      stream(res, [
        chatChunk({ role: 'assistant' }, 'function_call_filter: MALFORMED_FUNCTION_CALL'),
        usage,
        done,
      ]),
    ...empty,
    modes: [OPENAI_STREAM],
  },
  {
    does: 'streams the role and the finish reason at once',
    script: (res) => stream(res, [chatChunk({ role: 'assistant', content: '' }, 'stop'), done]),
    ...empty,
    modes: [OPENAI_STREAM],
  },
  {
    does: 'streams nothing but its last event',
    script: (res) => stream(res, [done]),
    ...empty,
    modes: [OPENAI_STREAM],
  },
  {
    does: 'streams a message without text',
    script: (res) => stream(res, messageEvents([])),
    ...empty,
    modes: [ANTHROPIC_STREAM],
  },
  {
    does: 'streams only the start and the end of a message',
    script: (res) => stream(res, [messageEvents([])[0] ?? '', messageEvent('message_stop')]),
    ...empty,
    modes: [ANTHROPIC_STREAM],
  },
])

testOutcomes('a line whose moderation stops the answer before any output', [
  {
    does: 'says so in a whole answer',
    script: (res) => chatAnswer(res, '', choice({ role: 'assistant', content: '' }, 'content_filter')),
    ...filtered,
    modes: [OPENAI],
  },
  {
    does: 'says so in the stream',
    script: (res) => stream(res, [role, chatChunk({}, 'content_filter'), usage, done]),
    ...filtered,
    modes: [OPENAI_STREAM],
  },
])

import type { ServerResponse } from 'node:http'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { type OutcomeRow, SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { answerJson } from '../../support/scripted-upstream.ts'

const row = (
  does: string,
  status: number,
  error: Record<string, unknown>,
  code: ErrorCode,
  more: Partial<OutcomeRow> = {},
): OutcomeRow => ({
  does,
  script: (res: ServerResponse) => answerJson(res, status, { type: 'error', error }),
  code,
  upstreamStatus: status,
  failsOver: false,
  blames: false,
  ...more,
})
const openai = { modes: [OPENAI, OPENAI_STREAM] }

testOutcomes('a line that refuses the request itself', [
  row(
    'answers 400 for the context length, by code',
    400,
    { code: 'context_length_exceeded', message: SECRET },
    'context_too_long',
  ),
  ...['messages[5].content', 'messages[0].content[1].text', 'input', 'input[2].output', 'instructions'].map(
    (param) =>
      row(
        `answers 400 because ${param} is too long`,
        400,
        { code: 'string_above_max_length', param, message: `Invalid '${param}': string too long.` },
        'context_too_long',
      ),
  ),
  ...['tools[13].function.name', 'tools[1].function.description', 'messages[1].tool_calls[0].id', 'user'].map(
    (param) =>
      row(
        `answers 400 because ${param} is too long, which fills no context`,
        400,
        { code: 'string_above_max_length', param, message: `Invalid '${param}': string too long.` },
        'invalid_request',
        { ...openai, ...(param.startsWith('messages') && { param }) },
      ),
  ),
  row(
    'answers 400 for the context length, in words',
    400,
    {
      type: 'invalid_request_error',
      message: `prompt is too long: 210000 tokens > 200000 maximum ${SECRET}`,
    },
    'context_too_long',
  ),
  row(
    'answers 422 for the context length',
    422,
    { message: `This model's maximum context length is 8192 tokens. ${SECRET}` },
    'context_too_long',
    openai,
  ),
  row(
    'answers 400 for its content policy',
    400,
    { code: 'content_policy_violation', message: SECRET },
    'content_filtered',
  ),
  row(
    'answers 400 for its content filter',
    400,
    { code: 'content_filter', message: SECRET },
    'content_filtered',
    openai,
  ),
  row('answers 400', 400, { type: 'invalid_request_error', message: SECRET }, 'invalid_request'),
  row(
    'answers 400 for a member the caller sent',
    400,
    { message: SECRET, param: 'messages[0].content' },
    'invalid_request',
    { ...openai, param: 'messages[0].content' },
  ),
  row(
    'answers 400 for a member that only the gateway sent',
    400,
    { message: SECRET, param: 'internal_member' },
    'invalid_request',
    openai,
  ),
  row(
    'answers 400 with text where a name should be',
    400,
    { message: SECRET, param: `messages ${SECRET}` },
    'invalid_request',
    openai,
  ),
  row('answers 422', 422, { message: SECRET, param: 'messages' }, 'invalid_request', {
    ...openai,
    param: 'messages',
  }),
  row('answers 413', 413, { type: 'request_too_large', message: SECRET }, 'request_too_large'),
])

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { explainsNoOutput, finishReasonOf, isModerated } from '../../../lib/core/operations/finish-reasons.ts'

type Request = Readonly<Record<string, unknown>>

const explains = (request: Request, stopReason: unknown = 'stop', usage: unknown = undefined) =>
  explainsNoOutput({ stopReason, usage }, request)
const HI = { messages: [{ role: 'user', content: 'hi' }] }

describe('an answer without output', () => {
  const unexplained = [undefined, null, '', 'null', 'stop', 'end_turn', 'completed', 'eos', 'eos_token']
  const failures = ['error', 'abort', 'network_error', 'insufficient_system_resource']
  for (const reason of [...unexplained, ...failures])
    it(`is not explained by its end: ${reason}`, () => assert.equal(explains(HI, reason), false))
  for (const reason of ['length', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal', 'anything', 7])
    it(`is explained by its end: ${reason}`, () => assert.equal(explains(HI, reason), true))

  const requests: [what: string, request: Request, isExplained: boolean][] = [
    ['a stop sequence', { stop: 'x' }, true],
    ['stop sequences', { stop: ['x'] }, true],
    ['stop sequences of the other protocol', { stop_sequences: ['x'] }, true],
    ['no stop sequence', { stop: '', stop_sequences: [] }, false],
    ['a stop that is none', { stop: 7 }, false],
    ['no output asked for', { max_tokens: 0 }, true],
    ['little output asked for', { max_tokens: 1 }, false],
    ['the result of a tool', { messages: [{}, { role: 'tool', content: 'x' }] }, true],
    ['the result of a function', { messages: [{ role: 'function', content: 'x' }] }, true],
    ['an earlier result of a tool', { messages: [{ role: 'tool' }, { role: 'user', content: 'x' }] }, false],
    ['the output of a call', { input: [{ type: 'function_call_output', output: 'x' }] }, true],
    ['an earlier output of a call', { input: [{ type: 'function_call_output' }, { role: 'user' }] }, false],
    ['a block of a result', { messages: [{ role: 'user', content: [{ type: 'tool_result' }] }] }, true],
    [
      'such a block of another kind, among others',
      { messages: [{ role: 'user', content: [{ type: 'text' }, 'x', { type: 'web_search_tool_result' }] }] },
      true,
    ],
    ['other blocks', { messages: [{ role: 'user', content: [{ type: 'text' }, { type: 7 }, null] }] }, false],
    ['a turn that is no object', { messages: ['tool'] }, false],
    ['no turn', { messages: [] }, false],
    ['a text for an input', { input: 'function_call_output' }, false],
  ]
  for (const [what, request, isExplained] of requests)
    it(`is ${isExplained ? '' : 'not '}explained by ${what}`, () =>
      assert.equal(explains(request), isExplained))

  it('is explained by a stop sequence only if its finish reason is a stop', () => {
    for (const reason of ['completed', 'end_turn', null]) assert.equal(explains({ stop: 'x' }, reason), false)
  })

  const usages: [usage: unknown, isExplained: boolean][] = [
    [{ completion_tokens_details: { reasoning_tokens: 1 } }, true],
    [{ output_tokens_details: { reasoning_tokens: 1 } }, true],
    [{ output_tokens_details: { thinking_tokens: 1 } }, true],
    [{ completion_tokens_details: 'x', output_tokens_details: { reasoning_tokens: 2 } }, true],
    [{ reasoning_tokens: 5 }, true],
    [{ thinking_tokens: 5 }, true],
    [{ reasoning_tokens: 0 }, false],
    [{ reasoning_tokens: -1 }, false],
    [{ completion_tokens: 5 }, false],
    [null, false],
    ['reasoning_tokens', false],
  ]
  for (const [usage, isExplained] of usages)
    it(`is ${isExplained ? '' : 'not '}explained by ${JSON.stringify(usage)}`, () =>
      assert.equal(explains(HI, 'stop', usage), isExplained))
})

describe('an answer that moderation stopped', () => {
  for (const reason of [
    'content_filter',
    'CONTENT_FILTER',
    'content_filter: violence',
    'guardrail_intervened',
    'sensitive',
    'safety',
    'SAFETY',
  ])
    it(`is recognised: ${reason}`, () => assert.equal(isModerated(reason), true))
  for (const reason of ['stop', 'no_content_filter', 'sensitive_topic', 'safety_off', 'unsafe', '', null, 7])
    it(`is not recognised by ${reason}`, () => assert.equal(isModerated(reason), false))
})

describe('the meaning of the finish reasons that providers document', () => {
  const MEANINGS: Readonly<Record<string, readonly string[]>> = {
    stop: ['STOP', 'END_TURN', 'eos', 'eos_token', 'COMPLETE', 'stop_sequence'],
    tool_calls: ['tool_calls', 'function_call', 'tool_use', 'TOOL_CALL'],
    length: [
      ...['MAX_TOKENS', 'model_length', 'model_context_window_exceeded', 'pause_turn', 'ERROR_LIMIT'],
      ...['TOO_MANY_TOOL_CALLS', 'repetition_truncation', 'max_tool_calls'],
    ],
    content_filter: [
      ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'MODEL_ARMOR', 'IMAGE_SAFETY'],
      ...['IMAGE_PROHIBITED_CONTENT', 'content_filtered', 'guardrail_intervened', 'ERROR_TOXIC'],
    ],
    malformed: [
      ...['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'malformed_tool_use', 'malformed_model_output'],
      ...['function_call_filter: MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE'],
    ],
    error: ['ERROR', 'abort', 'USER_CANCEL', 'TIMEOUT', 'insufficient_system_resource', 'network_error'],
    other: ['OTHER', 'LANGUAGE', 'NO_IMAGE', 'FINISH_REASON_UNSPECIFIED', 'repetition', 'unknown'],
  }
  for (const [meaning, reasons] of Object.entries(MEANINGS))
    it(`is ${meaning} for ${reasons.join(', ')}`, () => {
      for (const reason of reasons) assert.equal(finishReasonOf(reason), meaning, reason)
    })
})

import type { Content, Shape, StopReason } from './content-forms.ts'
import { halves, INPUT_TOKENS, OUTPUT_TOKENS } from './content-forms.ts'

const HEAD = { id: 'chatcmpl-1', created: 1, model: 'upstream-model' }
const usage = {
  prompt_tokens: INPUT_TOKENS,
  completion_tokens: OUTPUT_TOKENS,
  total_tokens: INPUT_TOKENS + OUTPUT_TOKENS,
}

/** Reasoning without words, as hosted routers send it. */
const SEALED = [{ type: 'reasoning.encrypted', format: 'openai-responses-v1', index: 0, data: 'c2VhbGVk' }]
const UNKNOWN = { type: 'mystery', riddle: { answer: 42 } }

const textPart = (text: string | undefined) => (text === undefined ? [] : [{ type: 'text', text }])

function contentOf({ text, unknown, moreText }: Content): unknown {
  return unknown ? [...textPart(text), UNKNOWN, ...textPart(moreText)] : (text ?? null)
}

const callsOf = ({ calls = [] }: Content) =>
  calls.map(({ id, name, input }) => ({
    id,
    type: 'function',
    function: { name, arguments: input ? JSON.stringify(input) : '' },
  }))

function messageOf(content: Content): object {
  const calls = callsOf(content)
  return {
    role: 'assistant',
    content: contentOf(content),
    ...(content.reasoning !== undefined && { reasoning_content: content.reasoning }),
    ...(content.sealed && { reasoning_details: SEALED }),
    ...(content.refusal !== undefined && { refusal: content.refusal }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

/** A whole chat completion. */
export const chatPlain = (content: Content, reason: StopReason): object => ({
  ...HEAD,
  object: 'chat.completion',
  choices: [{ index: 0, message: messageOf(content), finish_reason: reason }],
  usage,
})

/** The data of all events of a streamed chat completion. */
export function chatStreamed(content: Content, reason: StopReason, shape: Shape): readonly string[] {
  const chunk = (delta: object, finish: StopReason = null) => ({
    ...HEAD,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  const { tool_calls: calls, ...message } = messageOf(content) as { tool_calls?: object[] }
  const whole = {
    ...message,
    ...(calls && { tool_calls: calls.map((call, index) => ({ index, ...call })) }),
  }
  const chunks =
    shape === 'first event'
      ? [chunk(whole, reason)]
      : shape === 'last event'
        ? [chunk({ role: 'assistant', content: '' }), chunk(whole, reason)]
        : [
            chunk({ role: 'assistant', content: '' }),
            ...deltasOf(content).map((delta) => chunk(delta)),
            chunk({}, reason),
          ]
  const events = [...chunks, { ...HEAD, object: 'chat.completion.chunk', choices: [], usage }]
  return [...events.map((event) => JSON.stringify(event)), '[DONE]']
}

function deltasOf(content: Content): readonly object[] {
  const { reasoning, sealed, text, unknown, moreText, refusal } = content
  const inParts = (member: string, value: string | undefined) =>
    value === undefined ? [] : halves(value).map((half) => ({ [member]: half }))
  return [
    ...inParts('reasoning_content', reasoning),
    ...(sealed ? [{ reasoning_details: SEALED }] : []),
    ...inParts('content', text),
    ...(unknown ? [{ content: [UNKNOWN] }] : []),
    ...inParts('content', moreText),
    ...inParts('refusal', refusal),
    ...callsOf(content).flatMap(({ function: fn, ...call }, index) => [
      { tool_calls: [{ index, ...call, function: { ...fn, arguments: '' } }] },
      ...halves(fn.arguments).map((half) => ({ tool_calls: [{ index, function: { arguments: half } }] })),
    ]),
  ]
}

/** A whole completion of a text. */
export const completionPlain = ({ text = '' }: Content, reason: StopReason): object => ({
  ...HEAD,
  object: 'text_completion',
  choices: [{ index: 0, text, logprobs: null, finish_reason: reason }],
  usage,
})

/** The data of all events of a streamed completion of a text. */
export function completionStreamed(
  { text = '' }: Content,
  reason: StopReason,
  shape: Shape,
): readonly string[] {
  const chunk = (piece: string, finish: StopReason = null) => ({
    ...HEAD,
    object: 'text_completion',
    choices: [{ index: 0, text: piece, logprobs: null, finish_reason: finish }],
  })
  const chunks =
    shape === 'first event'
      ? [chunk(text, reason)]
      : shape === 'last event'
        ? [chunk(''), chunk(text, reason)]
        : [...halves(text).map((half) => chunk(half)), chunk('', reason)]
  const events = [...chunks, { ...HEAD, object: 'text_completion', choices: [], usage }]
  return [...events.map((event) => JSON.stringify(event)), '[DONE]']
}

import { randomUUID } from 'node:crypto'
import { chatAnswerOf, chatChunk as chunkOf } from '../../../support/scripted-upstream.ts'
import { piecesOf, type Said, sealOf, type Usage } from './script.ts'

const usageOf = ({ input, output }: Usage) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
})

const callsOf = ({ calls }: Said, turn: number, signed: boolean) =>
  calls.map(({ name, args }, i) => {
    const id = `call_${turn}_${i}`
    return {
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
      ...(signed && i === 0 && { extra_content: { google: { thought_signature: sealOf(id) } } }),
    }
  })

/** A whole completion; `turn` numbers the calls. */
export function chatCompletion(said: Said, turn: number, usage: Usage, signed: boolean): string {
  const calls = callsOf(said, turn, signed)
  const message = {
    role: 'assistant',
    content: said.text || null,
    refusal: null,
    annotations: [],
    ...(said.thought !== undefined && { reasoning_content: said.thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const finish = calls.length > 0 ? 'tool_calls' : 'stop'
  return chatAnswerOf('', {
    id: `chatcmpl-${randomUUID()}`,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: usageOf(usage),
    // Some providers leave it out, which one client does not accept.
    ...(!signed && { system_fingerprint: null }),
  })
}

/** The events of one; the arguments of a call come in pieces behind its name. */
export function chatEvents(said: Said, turn: number, usage: Usage, signed: boolean): string[] {
  const calls = callsOf(said, turn, signed)
  const id = `chatcmpl-${randomUUID()}`
  const chunk = (delta: object, finish: string | null = null, extra = {}) =>
    chunkOf(delta, finish, { id, ...extra })
  const callEvents = calls.flatMap(({ function: { name, arguments: args }, ...call }, index) => [
    chunk({ tool_calls: [{ index, ...call, function: { name, arguments: '' } }] }),
    ...piecesOf(args).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ])
  return [
    chunk({ role: 'assistant', content: '' }),
    ...piecesOf(said.thought ?? '').map((piece) => chunk({ reasoning_content: piece })),
    ...piecesOf(said.text).map((piece) => chunk({ content: piece })),
    ...callEvents,
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    chunk({}, null, { choices: [], usage: usageOf(usage) }),
    'data: [DONE]\n\n',
  ]
}

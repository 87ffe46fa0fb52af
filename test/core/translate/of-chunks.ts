import assert from 'node:assert/strict'
import { messages } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import { messageOf } from './accumulate.ts'
import type { Body } from './requests.ts'

const LINE = { protocol: 'openai', endpoints: new Set(['chat/completions']) } as const

/** Translates the chunks of such a line for callers of messages, or of responses. */
export function translator(from = messages, request: Body = {}) {
  const made = translationOf(from, LINE)?.stream({ request, created: 5, estimatedInputTokens: 9 })
  assert.ok(made)
  return made
}

export const chunk = (delta: unknown, more: Body = {}) => ({ choices: [{ index: 0, delta, ...more }] })

/** What a caller of messages gets of these chunks. */
export function ofChunks(chunks: readonly object[], request: Body = {}) {
  const stream = translator(messages, request)
  const text =
    chunks.map((one) => stream.push(one)).join('') + stream.end({ inputTokens: 7, outputTokens: 4 })
  return { ...messageOf(text), skipped: stream.skipped }
}
export const ofDeltas = (...deltas: unknown[]) => ofChunks(deltas.map((delta) => chunk(delta)))
/** A piece of a tool call. */
export const piece = (members: object) => ({ tool_calls: [members] })

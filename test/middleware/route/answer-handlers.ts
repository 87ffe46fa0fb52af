import type { IncomingHttpHeaders } from 'node:http'
import type { CallRequest } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import type { Translation } from '../../../lib/core/translate/index.ts'
import type { AnswerEnd } from '../../../lib/middleware/route/attempt/answer-end.ts'
import { AnswerHandler } from '../../../lib/middleware/route/attempt/answer-handler.ts'
import { connectionFailure } from '../../../lib/routing/attempt/failure.ts'

const TERMS = { price: FREE, contextWindow: undefined }
export const JSON_TYPE: IncomingHttpHeaders = { 'content-type': 'application/json' }
export const STREAM: IncomingHttpHeaders = { 'content-type': 'text/event-stream; charset=utf-8' }
export const ANSWER = JSON.stringify({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] })
const event = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`
export const WORD = event({ index: 0, delta: { content: 'Hi' } })
export const STOP = event({ index: 0, delta: {}, finish_reason: 'stop' })
export const DONE = 'data: [DONE]\n\n'
export const BROKEN = connectionFailure(new Error('broken'), false)

/**
 * What takes the answer to a chat, and what it has written to the caller.
 *
 * @param translation of a line that has another endpoint.
 */
export function handlerOf(members: object = {}, operation = chatCompletions, translation?: Translation) {
  const request = {
    operation,
    body: { json: {} },
    model: {},
    stream: false,
    answers: 1,
    units: 0,
    estimatedInputTokens: 5,
    maxOutputTokens: undefined,
    ...members,
  } as unknown as CallRequest
  const written: string[] = []
  const heard: number[] = []
  const sink = { commit: () => {}, write: (bytes: Buffer) => void written.push(String(bytes)) }
  const opener = { openStream: () => sink, onFirstByte: () => void heard.push(written.length) }
  const adapted = translation ? { ...request, operation: translation.to, translation } : request
  const handler = new AnswerHandler(request, adapted as never, TERMS, opener)
  return { handler, written, heard, push: (text: string) => handler.push(Buffer.from(text)) }
}

/** Of a failure: its code, what it says, and whether another line is tried, and blamed. */
export const failureOf = (end: AnswerEnd | undefined) =>
  end?.kind === 'failed'
    ? [end.failure.code, end.failure.detail, end.elsewhere, end.lineFault, end.committed]
    : end?.kind

/** What was sent of an answer, with what is to be sent of it. */
export function sentOf(written: readonly string[], end: AnswerEnd | undefined): string {
  if (end?.kind !== 'served') throw new Error(`the answer has ${JSON.stringify(failureOf(end))}`)
  const { unsent } = end
  return written.join('') + (Array.isArray(unsent) ? Buffer.concat(unsent) : String(unsent))
}

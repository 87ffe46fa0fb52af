import type { IncomingHttpHeaders } from 'node:http'
import { chatCompletions, type Operation } from '../../../../lib/core/operations/index.ts'
import type { Translation } from '../../../../lib/core/translate/index.ts'
import type { AnswerEnd } from '../../../../lib/middleware/route/attempt/attempt.ts'
import { routedCall } from './routed-calls.ts'

export const JSON_TYPE: IncomingHttpHeaders = { 'content-type': 'application/json' }
export const STREAM: IncomingHttpHeaders = { 'content-type': 'text/event-stream; charset=utf-8' }
export const ANSWER = JSON.stringify({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] })
const event = (choice: object) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`
export const WORD = event({ index: 0, delta: { content: 'Hi' } })
export const STOP = event({ index: 0, delta: {}, finish_reason: 'stop' })
export const DONE = 'data: [DONE]\n\n'

/** The event after the last piece of an answer. */
type Last = 'ends' | 'breaks off' | 'is left' | 'goes on'

/**
 * A request to a line that answers as a test says, and what came of it.
 *
 * @param members those of the request; its body is given by its JSON.
 * @param translation of a line that has another endpoint.
 */
export function lineAnswer(
  { body, ...members }: { body?: { json: object }; [member: string]: unknown } = {},
  operation: Operation = chatCompletions,
  translation?: Translation,
) {
  const json = body?.json ?? {}
  const raw = Buffer.from(JSON.stringify(json))
  const made = routedCall({
    ...{ operation, translation, isNative: true },
    members: { ...members, body: { json, raw } },
  })
  made.send()
  const written = () => made.log.flatMap((line) => (line.startsWith('write ') ? [line.slice(6)] : []))
  /** The line answers in some pieces. */
  async function answers(
    status: number,
    headers: IncomingHttpHeaders,
    pieces: readonly string[],
    last: Last,
  ) {
    await made.answer(status, headers, ...pieces)
    if (last === 'ends') made.over()
    else if (last === 'breaks off') made.breakOff()
    else if (last === 'is left') made.leave()
    await made.finished
    return made.result as NonNullable<typeof made.result>
  }
  return {
    ...{ made, written, answers },
    /** The line answers with success, in some pieces. */
    answered: (headers: IncomingHttpHeaders, ...pieces: string[]) => answers(200, headers, pieces, 'ends'),
  }
}

/** Of a failure: its code, what it says, and whether another line is tried, and blamed. */
export const failureOf = (end: AnswerEnd | undefined) =>
  end?.kind === 'failed'
    ? [end.failure.code, end.failure.detail, end.elsewhere, end.lineFault, end.committed]
    : end?.kind

/** The part of an answer that was sent, together with the part that is still to be sent. */
export function sentOf(written: readonly string[], end: AnswerEnd | undefined): string {
  if (end?.kind !== 'served') throw new Error(`the answer has ${JSON.stringify(failureOf(end))}`)
  const { unsent } = end
  return written.join('') + (Array.isArray(unsent) ? Buffer.concat(unsent) : String(unsent))
}

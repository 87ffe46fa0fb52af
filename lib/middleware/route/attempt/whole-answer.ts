import type { AnswerBytes, CallRequest } from '../../../core/call/index.ts'
import { type JsonObject, parseJson, parseKeepingIntegers } from '../../../core/json/index.ts'
import type { BodyCollector } from '../../../core/memory/index.ts'
import type { AnswerReading } from '../../../core/operations/index.ts'
import { UniqueIds } from '../../../core/translate/index.ts'
import type { AdaptedRequest } from '../../../routing/attempt/adapted-request.ts'
import { failureOfError } from '../../../routing/attempt/classify-failure.ts'
import type { AnswerHead } from '../../../routing/attempt/dispatch-exchange.ts'
import {
  emptyAnswer,
  type Failure,
  filteredAnswer,
  malformed,
  unreadable,
} from '../../../routing/attempt/failure.ts'
import { errorInPlaceOf } from '../../../routing/attempt/upstream-error.ts'
import { contextOf, looksLikeStream, newReader, readEvents } from './convert-answer.ts'
import { DataCollector } from './json-digest.ts'
import { knownUsage, type LineTerms, usageOfAnswer } from './metering.ts'

/** The reading of a whole answer of a line. */
export type WholeAnswer =
  | { readonly kind: 'failed'; readonly failure: Failure; readonly reading?: AnswerReading | undefined }
  /** The events of a call that asked for a stream. */
  | { readonly kind: 'events'; readonly events: Buffer; readonly reading: AnswerReading }
  | {
      readonly kind: 'answer'
      /** The bytes for the caller. */
      readonly unsent: AnswerBytes
      readonly reading: AnswerReading
      /** Parts of a translated answer that were left out. */
      readonly skipped: number
    }

const UNREADABLE = 'the answer is not JSON, or has too many values, members or levels'

/** Reads a whole answer with status 200, and converts it into the form and the protocol that the caller asked for. */
export function readWholeAnswer(
  collected: BodyCollector | DataCollector,
  { headers }: AnswerHead,
  request: CallRequest,
  adapted: AdaptedRequest,
  terms: LineTerms,
): WholeAnswer {
  const bytes = collected instanceof DataCollector ? collected.chunks : collected.take()
  const text = collected instanceof DataCollector ? collected.digest : bytes.toString()
  if (!text.startsWith('{') && looksLikeStream(text)) return answeredAsStream(text)
  // The bytes of any other answer are passed on.
  const parse = adapted.translation || request.stream ? parseKeepingIntegers : undefined
  const json = parseJson(text, Buffer.isBuffer(bytes) ? bytes : undefined, parse)
  return json === undefined ? failed(malformed(UNREADABLE)) : read(json, bytes)

  /** Reads the answer to a plain call that came as a stream. */
  function answeredAsStream(text: string): WholeAnswer {
    const { answerForm } = adapted.operation
    if (!answerForm || request.stream) return failed(malformed(UNREADABLE))
    try {
      const { events, error } = readEvents(text, newReader(request, adapted))
      if (error !== undefined) return failed(failureOfError({ error }, headers))
      const answer = answerForm.fromStream(events)
      return read(answer, JSON.stringify(answer))
    } catch (error) {
      return failed(unreadable(error))
    }
  }

  /** @param unsent the bytes of the answer, in the pieces in which it is sent on. */
  function read(json: unknown, unsent: AnswerBytes): WholeAnswer {
    const { operation, translation } = adapted
    const inPlace = errorInPlaceOf(json)
    if (inPlace !== undefined) return failed(failureOfError(inPlace, headers))
    let reading: AnswerReading
    try {
      reading = operation.readAnswer(json, request.body.json)
    } catch (error) {
      return failed(unreadable(error))
    }
    const { error, substance } = reading
    if (error !== undefined) return failed(failureOfError({ error }, headers), reading)
    try {
      if (request.stream) {
        const events = Buffer.from(operation.answerForm?.toStream(json as JsonObject) ?? '')
        return { kind: 'events', events, reading }
      }
      if (substance === 'empty') return failed(emptyAnswer(), reading)
      if (substance === 'filtered') return failed(filteredAnswer(), reading)
      if (!translation) {
        const ids = UniqueIds.for(operation, request.body.json)
        const replaced = ids?.replaced(json as JsonObject, typeof unsent === 'string' ? unsent : text)
        return { kind: 'answer', unsent: replaced ?? unsent, reading, skipped: 0 }
      }
      const usage = knownUsage(usageOfAnswer(request, reading, terms), reading.usage)
      const { body, skipped } = translation.answer(json as JsonObject, usage, contextOf(request))
      return { kind: 'answer', unsent: JSON.stringify(body), reading, skipped }
    } catch (error) {
      return failed(unreadable(error), reading)
    }
  }
}

function failed(failure: Failure, reading?: AnswerReading): WholeAnswer {
  return { kind: 'failed', failure, reading }
}

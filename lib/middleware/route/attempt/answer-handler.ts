import type { IncomingHttpHeaders } from 'node:http'
import type { BodyCollector } from '../../../core/bytes/index.ts'
import type { AnswerBytes, CallRequest } from '../../../core/call/index.ts'
import { type JsonObject, parseJson, parseKeepingIntegers } from '../../../core/json/index.ts'
import type { AnswerReading, StreamingOperation, StreamReader } from '../../../core/operations/index.ts'
import type { Translation } from '../../../core/translate/index.ts'
import type { AdaptedRequest } from '../../../routing/attempt/adapted-request.ts'
import { DataCollector } from '../../../routing/attempt/data-collector.ts'
import type { ResponseHandler } from '../../../routing/attempt/dispatch-exchange.ts'
import {
  brokenOff,
  emptyAnswer,
  type Failure,
  filteredAnswer,
  goneFromLine,
  malformed,
  unreadable,
} from '../../../routing/attempt/failure.ts'
import { failureOfError, failureOfStatus } from '../../../routing/attempt/outcome.ts'
import { errorInPlaceOf, parseErrorBody } from '../../../routing/attempt/upstream-error.ts'
import { type RelayEnd, StreamRelay } from '../relay/stream-relay.ts'
import { TranslatedEvents } from '../relay/translated-events.ts'
import type { AnswerEnd, StreamOpener } from './answer-end.ts'
import { collecting, MAX_ERROR_BODY_BYTES, wholeOf } from './collected-body.ts'
import { type LineTerms, usageOfAnswer, usageOfStream } from './metering.ts'
import { contextOf, isConvertible, looksLikeStream, readEvents } from './other-form.ts'

const UNREADABLE = 'the answer is not JSON, or has too many values, members or levels'

/** Reads the response to a routed request: an error body, a whole answer, or a stream that is relayed. */
export class AnswerHandler implements ResponseHandler<AnswerEnd> {
  readonly decodes = true
  readonly #request: CallRequest
  readonly #adapted: AdaptedRequest
  readonly #terms: LineTerms
  readonly #opener: StreamOpener
  #status: number | null = null
  #headers: IncomingHttpHeaders | undefined
  /** The body, in one chunk as most come, or what collects it. */
  #body: Buffer | BodyCollector | DataCollector | undefined
  #overflows = false
  #relay: StreamRelay | undefined
  /** The reader of the stream; undefined until a stream begins. */
  reader: StreamReader | undefined
  #events: TranslatedEvents | undefined
  #skipped = 0
  #heard = false
  /** The chunks of this turn of the event loop, which are relayed together. */
  #turn: Buffer[] | undefined

  /** @param adapted the request in the form that was sent to the line. */
  constructor(request: CallRequest, adapted: AdaptedRequest, terms: LineTerms, opener: StreamOpener) {
    this.#request = request
    this.#adapted = adapted
    this.#terms = terms
    this.#opener = opener
  }

  /** The number of the caller's next event, in a protocol that numbers them. */
  get nextEventNumber(): number | undefined {
    return (this.#events ?? this.reader)?.nextEventNumber
  }

  /** How many parts of a translated answer were left out. */
  get skipped(): number {
    return this.#events?.skipped ?? this.#skipped
  }

  /** Takes the head. Returns an end if the response is not what was requested. */
  start(status: number, headers: IncomingHttpHeaders): AnswerEnd | undefined {
    this.#status = status
    this.#headers = headers
    if (status !== 200) return undefined
    const encoding = headers['content-encoding']
    const type = String(headers['content-type'] ?? '').toLowerCase()
    const isStream = type.startsWith('text/event-stream')
    if (encoding !== undefined && encoding !== 'identity')
      return this.#failed(malformed(`encoded as ${encoding}`))
    if (isStream !== this.#request.stream && !(this.#adapted.operation.answerForm && isConvertible(type)))
      return this.#failed(malformed(`the answer has the type "${type}"`))
    if (isStream && this.#request.stream) this.#startRelay()
    else if (this.#adapted.operation.answersData) this.#body = new DataCollector()
    return undefined
  }

  #startRelay(): StreamRelay {
    const { operation, translation } = this.#adapted
    const reader = this.#newReader()
    this.reader = reader
    const translator = translation?.stream(contextOf(this.#request))
    this.#events =
      translator && new TranslatedEvents(translator, () => usageOfStream(this.#request, reader, this.#terms))
    this.#relay = new StreamRelay(
      reader,
      operation.streamTerminator ?? '',
      this.#opener.openStream(),
      this.#events,
      this.#headers,
    )
    return this.#relay
  }

  #newReader(): StreamReader {
    const { body, answers } = this.#request
    return (this.#adapted.operation as StreamingOperation).streamReader({ json: body.json, answers })
  }

  /**
   * Takes a chunk of the body.
   *
   * @returns true when {@link flush} has to be called at the end of this turn of the event loop.
   */
  push(chunk: Buffer): boolean {
    if (!this.#heard && this.#status === 200) this.#opener.onFirstByte?.()
    this.#heard = true
    if (!this.#relay) {
      if (this.#body === undefined && chunk.length <= MAX_ERROR_BODY_BYTES) this.#body = chunk
      else {
        this.#body = collecting(this.#body, this.#status)
        this.#overflows ||= !this.#body.push(chunk)
      }
      return this.#overflows
    }
    if (this.#turn) {
      this.#turn.push(chunk)
      return false
    }
    this.#turn = [chunk]
    return true
  }

  /** Relays the chunks of this turn. Returns the end once there is one. */
  flush(): AnswerEnd | undefined {
    if (this.#relay) {
      const turn = this.#turn
      if (!turn) return undefined
      this.#turn = undefined
      return this.#relayed(this.#relay.push(turn.length === 1 ? (turn[0] as Buffer) : Buffer.concat(turn)))
    }
    if (!this.#overflows) return undefined
    return this.#status === 200 ? this.#failed(malformed('the answer is too long')) : this.#refused()
  }

  /** Handles the regular end of the response. */
  finish(): AnswerEnd {
    const flushed = (this.#relay || this.#overflows) && this.flush()
    if (flushed) return flushed
    if (this.#relay) return this.#relayed(this.#relay.finish()) as AnswerEnd
    return this.#status === 200 ? this.#answered() : this.#refused()
  }

  /** Ends the exchange because the caller left. Chunks that have already come may hold another end. */
  abandon(): AnswerEnd {
    return this.flush() ?? { kind: 'abandoned', reader: this.reader }
  }

  /** Handles a response that broke off. After the finish reason the answer counts as complete. */
  breakOff(failure: Failure): AnswerEnd {
    const flushed = this.flush()
    if (flushed) return flushed
    if (this.#relay?.whole) return this.#relayed(this.#relay.finish()) as AnswerEnd
    return this.#status !== null && this.#status !== 200 ? this.#refused() : this.#failed(failure)
  }

  #relayed(end: RelayEnd | undefined): AnswerEnd | undefined {
    if (end?.kind === 'complete')
      return { kind: 'served', unsent: end.tail, reader: this.reader as StreamReader }
    return end && this.#failed(end.failure)
  }

  #answered(): AnswerEnd {
    const collected = this.#body
    // Its pieces are not kept beside the whole.
    this.#body = undefined
    const isData = collected instanceof DataCollector
    const body = isData ? collected.chunks : Buffer.isBuffer(collected) ? collected : wholeOf(collected)
    const text = isData ? collected.digest : body.toString()
    if (!text.startsWith('{') && looksLikeStream(text)) return this.#answeredAsStream(text)
    // The bytes of any other answer are passed on.
    const parse = this.#adapted.translation || this.#request.stream ? parseKeepingIntegers : undefined
    const json = parseJson(text, isData ? undefined : (body as Buffer), parse)
    return json === undefined ? this.#failed(malformed(UNREADABLE)) : this.#read(json, body)
  }

  /**
   * Judges a whole answer.
   *
   * @param body its bytes, in the pieces in which it is sent on.
   */
  #read(json: unknown, body: AnswerBytes): AnswerEnd {
    const { operation, translation } = this.#adapted
    const inPlace = errorInPlaceOf(json)
    if (inPlace !== undefined) return this.#failed(failureOfError(inPlace, this.#headers))
    let reading: AnswerReading
    try {
      reading = operation.readAnswer(json, this.#request.body.json)
    } catch (error) {
      return this.#failed(unreadable(error))
    }
    if (reading.error !== undefined)
      return this.#failed(failureOfError({ error: reading.error }, this.#headers))
    if (this.#request.stream) return this.#relayWhole(json as JsonObject)
    if (reading.substance === 'empty') return this.#failed(emptyAnswer())
    if (reading.substance === 'filtered') return this.#failed(filteredAnswer())
    if (translation) return this.#translated(translation, json, reading)
    return { kind: 'served', unsent: body, reading }
  }

  /** Reads the answer to a plain call that came as a stream. */
  #answeredAsStream(text: string): AnswerEnd {
    const { answerForm } = this.#adapted.operation
    if (!answerForm || this.#request.stream) return this.#failed(malformed(UNREADABLE))
    try {
      const { events, error } = readEvents(text, this.#newReader())
      if (error !== undefined) return this.#failed(failureOfError({ error }, this.#headers))
      const answer = answerForm.fromStream(events)
      return this.#read(answer, JSON.stringify(answer))
    } catch (error) {
      return this.#failed(unreadable(error))
    }
  }

  /** Relays the answer to a streamed call that came whole. */
  #relayWhole(answer: JsonObject): AnswerEnd {
    const { answerForm } = this.#adapted.operation
    const relay = this.#startRelay()
    try {
      const events = Buffer.from(answerForm?.toStream(answer) ?? '')
      return this.#relayed(relay.push(events) ?? relay.finish()) as AnswerEnd
    } catch (error) {
      return this.#failed(unreadable(error))
    }
  }

  #translated(translation: Translation, json: unknown, reading: AnswerReading): AnswerEnd {
    const usage = usageOfAnswer(this.#request, reading, this.#terms)
    try {
      const { body, skipped } = translation.answer(json as JsonObject, usage, contextOf(this.#request))
      this.#skipped = skipped
      return { kind: 'served', unsent: JSON.stringify(body), reading }
    } catch (error) {
      return this.#failed(unreadable(error))
    }
  }

  /** Handles a status other than 200 with the part of its body that came. */
  #refused(): AnswerEnd {
    if (this.#status === 404 && this.#request.resource) return this.#failed(goneFromLine())
    const body = parseErrorBody(wholeOf(this.#body).toString())
    const failure = failureOfStatus(this.#status as number, this.#headers ?? {}, body)
    // The caller did not send the members of a translated request.
    return this.#failed(this.#adapted.translation ? { ...failure, param: undefined } : failure)
  }

  #failed(failure: Failure): AnswerEnd {
    const committed = this.#relay?.committed ?? false
    const elsewhere = failure.retryable && !committed
    return {
      kind: 'failed',
      failure: committed ? brokenOff(failure) : failure,
      committed,
      elsewhere,
      // Failures that say something about the line, not only about the request, its caller, or what this process lacks.
      lineFault: failure.fault !== null || (elsewhere && this.#status !== null),
      reader: this.reader,
    }
  }
}

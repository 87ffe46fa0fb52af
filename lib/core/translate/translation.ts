import type { Operation, ReportedUsage } from '../operations/index.ts'

/** A JSON object: a body, or any part of one. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Token counts on their way from one accounting to the other. Input includes what a cache had to do with. */
export interface TranslatedUsage extends ReportedUsage {
  /** Of the output, what was thought; undefined where it was not told. */
  readonly reasoningTokens?: number | undefined
}

/** What a request is translated for. */
export interface RequestContext {
  /** The upstream's name of the model. */
  readonly upstreamModel: string
  /** Output tokens asked for where the caller's protocol lets it leave them open and the line's does not. */
  readonly defaultMaxTokens: number
}

/** What the translation of an answer has to know. */
export interface AnswerContext {
  /** The caller's own request. */
  readonly request: JsonObject
  /** Seconds since 1970, for protocols that tell when an answer was made. */
  readonly created: number
}

/** A whole answer in the caller's protocol. */
export interface TranslatedAnswer {
  readonly body: JsonObject
  /** How many parts of the upstream's answer have no counterpart and were left out. */
  readonly skipped: number
}

/**
 * Translates one stream as it passes, event by event. It keeps what the caller's protocol needs to know of earlier
 * events (which block is open, which tool call has which index), never what was said.
 *
 * A stream reader of the line's operation has read each event before: error events and what is no JSON never get here.
 */
export interface StreamTranslator {
  /**
   * Takes one event of the upstream's stream.
   *
   * @param json its data, parsed; undefined for a comment and for a last event that is no JSON.
   * @returns whole events in the caller's framing, ready to be sent; '' for none. Nothing that tells the end is among
   * them: why the answer stopped, its usage and the protocol's last event come from {@link end}.
   * @throws {RangeError} when more would have to be held back than is allowed.
   */
  push(json: object | undefined): string
  /**
   * Text of events was copied that would have come out like the last one translated, see {@link textMember}.
   *
   * @param delta as it stands in the event's JSON, UTF-8 read as latin1.
   */
  copied(delta: string): void
  /**
   * The answer is whole. To be called once, whether or not the upstream sent its own last event.
   *
   * @param usage what the caller is charged for, in the gateway's accounting.
   * @returns all that is still missing of the caller's stream, its last event included.
   */
  end(usage: TranslatedUsage): string
  /**
   * The member of the last output that holds the event's text, such as `content`, where that output was a single event
   * and the next event of the same shape will come out the same but for this text; else undefined. Lets a relay copy
   * the text of such events instead of parsing them.
   */
  readonly textMember: string | undefined
  /** How many events or parts of them have no counterpart and were left out. */
  readonly skipped: number
}

/** One direction: calls of one endpoint served by lines that speak another. A direction is a row in `directions.ts`. */
export interface Translation {
  /** The endpoint that was called. */
  readonly from: Operation
  /** The endpoint that is called on the line. */
  readonly to: Operation
  /**
   * The body for the line, as a new object; the caller's is not changed. `model` stays the caller's: the line's operation
   * writes the upstream's name when the bytes are made.
   *
   * @throws {Untranslatable} where the request asks for what the line's protocol has no word for.
   */
  request(json: JsonObject, context: RequestContext): JsonObject
  /**
   * A whole answer of the line, which the line's operation has read before, as one of the caller's protocol.
   *
   * @param usage what the caller is charged for, in the gateway's accounting.
   * @throws {SyntaxError} where it is not what the line's protocol sends.
   */
  answer(json: JsonObject, usage: TranslatedUsage, context: AnswerContext): TranslatedAnswer
  stream(context: AnswerContext): StreamTranslator
  /** A text that stands in every request which holds what answers of this direction left in the conversation. */
  readonly foreign: string
  /**
   * Such a request as lines of the caller's own protocol take it, which refuse the thinking of other lines; a new object.
   */
  withoutForeign(json: JsonObject): JsonObject
}

/** A request asks for what another protocol has no counterpart for. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable'
  /** The member, in the caller's notation, such as `messages[1].content[0]`. */
  readonly param: string

  constructor(param: string) {
    super(`${param} has no counterpart`)
    this.param = param
  }
}

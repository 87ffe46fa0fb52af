import { type JsonObject, nonEmptyString } from '../json/index.ts'
import type { Operation, ReportedUsage } from '../operations/index.ts'

/** The token counts of an answer. Input tokens include those that were read from or written to a cache. */
export type TranslatedUsage = ReportedUsage

/** The facts that the translation of a request depends on, beside the request. */
export interface RequestContext {
  /** The upstream's name of the model. */
  readonly upstreamModel: string
  /** The output limit for a request without one, on a line whose protocol demands one. */
  readonly defaultMaxTokens: number
  /** Decides about members that have no counterpart. Defaults to {@link refuse}. */
  readonly leaveOut?: LeaveOut
  /** Notes members that the line gets weaker than they are meant, or not at all. Defaults to nothing. */
  readonly report?: Report
}

/**
 * Called with a member that has no counterpart and that a request can do without. If it returns, the member is left out.
 *
 * @param param the member, in the caller's notation.
 * @param what what it is, if its name does not say so, such as `the tool "file_search"`.
 * @throws {Untranslatable} if the request has to be refused.
 */
export type LeaveOut = (param: string, what?: string) => void

/**
 * Called with a member that the request is served without, or with less of, under every policy: a hint, or an effort that the
 * model does not have.
 *
 * @param param the member, in the caller's notation.
 */
export type Report = (param: string) => void

/** Refuses what has no counterpart. */
export const refuse: LeaveOut = (param, what) => {
  throw new Untranslatable(param, what, true)
}

/** The facts that the translation of an answer depends on, beside the answer. */
export interface AnswerContext {
  /** The caller's own request. */
  readonly request: JsonObject
  /** When the answer was made, in seconds since 1970. */
  readonly created: number
  /** The input tokens, as the gateway estimates them before the line reports them. */
  readonly estimatedInputTokens: number
  /** Whether the chat reports the web searches of the line to the next translator. Defaults to no. */
  readonly reportsSearches?: true
}

/** Returns the model of an answer. One that does not say it is of the model that was asked for. */
export function modelOf({ model }: JsonObject, { request }: AnswerContext): unknown {
  return nonEmptyString(model) ?? request.model
}

/** A whole answer in the caller's protocol. */
export interface TranslatedAnswer {
  readonly body: JsonObject
  /** How many parts of the upstream's answer have no counterpart and were left out. */
  readonly skipped: number
}

/**
 * Translates one stream, event by event. It stores what the caller's protocol needs of earlier events (which block is
 * open, which tool call has which index), but no text.
 *
 * The stream reader of the line's operation reads each event first: error events and invalid JSON never reach a
 * translator.
 */
export interface StreamTranslator {
  /**
   * Takes one event of the upstream's stream.
   *
   * @param json the parsed data; undefined for a comment and for a last event that is not JSON.
   * @returns whole events in the caller's framing; '' if there are none. The end of the stream (stop reason, usage and
   * last event) is not among them: {@link end} returns it.
   * @throws {RangeError} if more would have to be buffered than is allowed.
   */
  push(json: object | undefined): string
  /**
   * Takes note of text that the relay copied from upstream events without calling {@link push}, see {@link textMember}.
   *
   * @param delta the text as it is escaped in the event's JSON, UTF-8 read as latin1.
   */
  copied(delta: string): void
  /**
   * Ends the stream. Call it once, when the answer is whole, whether or not the upstream sent its own last event.
   *
   * @param usage what the caller is charged for, in the gateway's accounting.
   * @returns the remaining events of the caller's stream, its last event included.
   */
  end(usage: TranslatedUsage): string
  /**
   * The member that holds the text of the last output, such as `content`. It is set if that output was a single event
   * and the next event of the same shape will differ in this text only; else it is undefined. A relay then copies the
   * text of such events instead of parsing them.
   */
  readonly textMember: string | undefined
  /** The number of the next event, in a protocol that numbers them. */
  readonly nextEventNumber?: number | undefined
  /** How many events, or parts of them, have no counterpart and were left out. */
  readonly skipped: number
}

/** Translates requests, answers and streams of one endpoint to another and back. */
export interface Translator {
  /**
   * Returns the body for the line as a new object; the caller's is not changed. `model` stays the caller's: the line's
   * operation replaces it when it writes the body.
   *
   * @throws {Untranslatable} if the request asks for something that the line's protocol cannot express.
   */
  request(json: JsonObject, context: RequestContext): JsonObject
  /**
   * Translates a whole answer of the line, which the line's operation has read before.
   *
   * @param usage what the caller is charged for, in the gateway's accounting.
   * @throws {SyntaxError} if the answer is not what the line's protocol sends.
   */
  answer(json: JsonObject, usage: TranslatedUsage, context: AnswerContext): TranslatedAnswer
  stream(context: AnswerContext): StreamTranslator
}

/** One direction: calls of one endpoint served by lines that have another. Each is a row in `directions.ts`. */
export interface Translation extends Translator {
  readonly from: Operation
  /** The endpoint that is called on the line. */
  readonly to: Operation
  /** Whether the conversation of a request may hold parts that only the translated lines accept. */
  mayHaveForeign(json: JsonObject, raw: Buffer): boolean
  /** Returns such a request, as a new object, without what lines of the caller's own protocol refuse. */
  withoutForeign(json: JsonObject): JsonObject
}

/** A caller may name a member by megabytes. */
const MAX_PARAM_LENGTH = 200

/** Thrown if a request asks for something that the other protocol cannot express. */
export class Untranslatable extends Error {
  override readonly name = 'Untranslatable'
  /** The member, in the caller's notation, such as `messages[1].content[0]`. */
  readonly param: string
  /** A description, if the name of the member does not say what it is. */
  readonly what: string | undefined
  /** Whether the request can do without it. */
  readonly dispensable: boolean

  constructor(param: string, what?: string, dispensable = false) {
    const name = param.slice(0, MAX_PARAM_LENGTH).toWellFormed()
    super(`${what === undefined ? name : `${what} (${name})`} has no counterpart`)
    this.param = name
    this.what = what
    this.dispensable = dispensable
  }
}

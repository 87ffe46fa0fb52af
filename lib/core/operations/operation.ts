import type { z } from 'zod'
import type { Feature, ModelKind } from '../catalog/index.ts'
import type { ProtocolName, StreamEvent } from '../protocols/index.ts'

/** What a call consumed. */
export interface Usage {
  /** All input tokens, those read from and written to a cache included. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  /** All output tokens, those of reasoning included. */
  readonly outputTokens: number
  /** Images made. */
  readonly images?: number
  /** Seconds of video made. */
  readonly seconds?: number
  /** Searches that a rerank came to: of so many documents each. */
  readonly searchUnits?: number
  /** `measured`: as the upstream reported; `estimated`: counted by the gateway because nothing was reported. */
  readonly source: 'measured' | 'estimated'
}

/** The counts an upstream reports; undefined members were not reported, a reported zero is a zero. */
export interface ReportedUsage {
  inputTokens?: number | undefined
  cachedInputTokens?: number | undefined
  cacheWriteTokens?: number | undefined
  outputTokens?: number | undefined
  /** Images that the answer holds. */
  images?: number | undefined
  searchUnits?: number | undefined
}

/**
 * What the calls of an endpoint are charged by, beside the price of a request.
 *
 * - `tokens`: input and output.
 * - `input`: input only; there is no output that has tokens.
 * - `images`: images made, or the tokens that they are reported to be.
 * - `searches`: searches, or the tokens read.
 * - `seconds`: seconds of video made, or the tokens that they are reported to be.
 * - `none`: nothing at all, the price of a request included; nothing is held either.
 */
export type PriceUnit = 'tokens' | 'input' | 'images' | 'searches' | 'seconds' | 'none'

/** What an endpoint's body says about itself. */
export interface RequestFacts {
  readonly model: string
  readonly stream: boolean
  readonly features: ReadonlySet<Feature>
  /** The member that asks for each feature, to name it in a refusal. */
  readonly featureParams: ReadonlyMap<Feature, string>
  readonly estimatedInputTokens: number
  /** Tokens that have to fit into a model's window at a time. Defaults to all of the input. */
  readonly windowTokens?: number
  readonly maxOutputTokens: number | undefined
  readonly answers: number
  /** The most of its operation's price unit that the call can come to, where that is no token. */
  readonly units?: number
  readonly messages: number
  readonly tools: number
  readonly images: number
}

/**
 * What an upstream's answer, or a finished stream, amounts to.
 *
 * - `output`: it holds output.
 * - `refusal`: the model itself declined; an answer like any other, even without text.
 * - `filtered`: stopped by moderation with no output.
 * - `empty`: no output at all.
 */
export type Substance = 'output' | 'refusal' | 'filtered' | 'empty'

/** A whole answer, read. */
export interface AnswerReading {
  readonly substance: Substance
  readonly usage: ReportedUsage
  /** Output tokens as the gateway estimates them; computed only where usage is missing. */
  estimateOutput(): number
  /** The upstream's error object, where the answer says that it failed. */
  readonly error?: unknown
  /** The id under which the upstream keeps the answer, so that a later request can refer to it. */
  readonly keptId?: string | undefined
}

/** One event of a stream, read. */
export interface FrameReading {
  /** Whether it carries real output; the first that does commits the attempt. */
  readonly output: boolean
  /** Whether the caller gets it; false for the usage chunk that only we asked for. */
  readonly relay: boolean
  /** Whether the answer is complete with it: every choice has its finish reason. */
  readonly finished: boolean
  /** Whether it is the protocol's last event. */
  readonly last: boolean
  /** The upstream's error object, when the event is one. */
  readonly error: unknown
  /** The member that holds the event's text, where the event carries that and nothing else of note. */
  readonly textMember: string | undefined
  /** The event's data, parsed, for who reads on; undefined where it is no JSON: a comment, or the last event. */
  readonly json: object | undefined
}

/** The reading of an event that means nothing; readers fill in what theirs does. */
export function newReading(): { -readonly [member in keyof FrameReading]: FrameReading[member] } {
  return {
    output: false,
    relay: true,
    finished: false,
    last: false,
    error: undefined,
    textMember: undefined,
    json: undefined,
  }
}

/** Reads one stream as it passes; keeps only counts. */
export interface StreamReader {
  /** Reads one event with care. Throws SyntaxError when its data is not what the protocol sends. */
  read(event: StreamEvent): FrameReading
  /**
   * Counts the output of an event that differs from one read before only in its text.
   *
   * @param delta the text as it stands in the event's JSON, UTF-8 read as latin1.
   */
  countText(delta: string): void
  /** Whether all of the answer that has begun is finished, so that the stream may end here. */
  readonly whole: boolean
  /** What the stream amounts to so far. */
  readonly substance: Substance
  /** Usage reported so far. */
  readonly usage: ReportedUsage
  /** Output tokens of the events read so far, as the gateway estimates them. */
  readonly estimatedOutput: number
  /** The same of the events since output was last reported: what `usage` does not know of yet. */
  readonly unreportedOutput: number
  /** The id under which the upstream keeps the answer, once it has said so. */
  readonly keptId?: string | undefined
  /** The number of the event to come, in a protocol that numbers them. Those from the finish on are not counted. */
  readonly nextEventNumber?: number
}

/** Estimates the tokens of a text. */
export type TokenEstimator = (text: string) => number

/** How a body is changed on its way to an upstream. */
export interface UpstreamEdit {
  /** The upstream's name of the model. */
  readonly model: string
}

/** What a stream reader has to know about the request. */
export interface StreamReaderOptions {
  readonly json: Readonly<Record<string, unknown>>
  readonly answers: number
}

/**
 * One endpoint: its schema, the facts read off a request, the bytes sent upstream, and how its answers are read. Adding
 * an endpoint is a file with one of these and a row in `OPERATIONS`.
 */
export interface Operation {
  readonly name: string
  readonly kind: ModelKind
  readonly priceUnit: PriceUnit
  /** The wire protocol of the endpoint; a line of the same one gets the body nearly as it came. */
  readonly protocol: ProtocolName
  /** Inbound path. */
  readonly path: string
  /** Path behind a line's base URL. */
  readonly upstreamPath: string
  /** Its name among a line's `endpoints`. Defaults to `upstreamPath` without its slash. */
  readonly endpoint?: string
  /** Whether a body may be `multipart/form-data`, too. */
  readonly acceptsForms?: boolean
  readonly schema: z.ZodType
  /** Reads the facts off a body that the schema accepted. */
  facts(json: Readonly<Record<string, unknown>>, raw: Buffer, estimate: TokenEstimator): RequestFacts
  /** The first characters of the prompt, which upstream prompt caches key on. */
  promptPrefix(json: Readonly<Record<string, unknown>>): string
  /** The id of the answer that a request goes on from, which only the line that gave it has; undefined: of none. */
  goesOnFrom?(json: Readonly<Record<string, unknown>>): string | undefined
  /** The bytes for a line: the caller's own, except where they must differ. */
  upstreamBody(raw: Buffer, json: Readonly<Record<string, unknown>>, edit: UpstreamEdit): Buffer
  /** Reads a whole answer. Throws SyntaxError when it is not one. */
  readAnswer(json: unknown): AnswerReading
  /**
   * Whether `readAnswer` is given a digest, in which long strings and lists of numbers are cut short: for answers of
   * many megabytes that are data, of which no second copy is made then.
   */
  readonly answersData?: boolean
  /** Absent: the endpoint does not stream. */
  streamReader?(options: StreamReaderOptions): StreamReader
  /** The stream's last event, for an upstream that forgets it. */
  readonly streamTerminator?: string
}

/** An endpoint that streams too. */
export interface StreamingOperation extends Operation {
  streamReader(options: StreamReaderOptions): StreamReader
  readonly streamTerminator: string
}

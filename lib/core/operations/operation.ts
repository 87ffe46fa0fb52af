import type { z } from 'zod'
import type { Feature, ModelKind } from '../catalog/index.ts'
import type { ProtocolName, StreamEvent } from '../protocols/index.ts'
import type { AnswerForm } from './answer-form.ts'
import type { FinishReason } from './finish-reasons.ts'

/** The consumption of a call. */
export interface Usage {
  /** All input tokens, including those that were read from or written to a cache. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  /** The part of `cacheWriteTokens` that the cache keeps for an hour. Absent: none, as for the other parts below. */
  readonly cacheWrite1hTokens?: number
  /** The part of `inputTokens` that is audio. */
  readonly audioInputTokens?: number
  /** All output tokens, including reasoning. */
  readonly outputTokens: number
  /** The part of `outputTokens` that is audio. */
  readonly audioOutputTokens?: number
  /** The part of `outputTokens` that is reasoning. */
  readonly reasoningTokens?: number
  /** The number of images made. */
  readonly images?: number
  /** Seconds of video made. */
  readonly seconds?: number
  /** The number of searches of a rerank; each covers a fixed number of documents. */
  readonly searchUnits?: number
  /** The number of web searches that the provider ran for the answer. */
  readonly webSearches?: number
  /** The begun minutes of an answer or WebSocket that is passed on, if it is priced by them. */
  readonly minutes?: number
  /** The tier that the upstream served the call in, if it is not the usual one. */
  readonly serviceTier?: string
  /**
   * `measured`: as the upstream reported; `estimated`: counted by the gateway because nothing was reported; `bounded`: the
   * upstream reported more than the call can have used.
   */
  readonly source: 'measured' | 'estimated' | 'bounded'
  /** The report of the upstream, if it was bounded. */
  readonly reported?: ReportedUsage
}

/** The counts that an upstream reports. An undefined member was not reported; a reported zero is a zero. */
export interface ReportedUsage {
  inputTokens?: number | undefined
  cachedInputTokens?: number | undefined
  cacheWriteTokens?: number | undefined
  cacheWrite1hTokens?: number | undefined
  audioInputTokens?: number | undefined
  outputTokens?: number | undefined
  audioOutputTokens?: number | undefined
  reasoningTokens?: number | undefined
  /** The number of images in the answer. */
  images?: number | undefined
  searchUnits?: number | undefined
  webSearches?: number | undefined
  /** The tier of service, in small letters; empty: the usual one. */
  serviceTier?: string | undefined
}

/**
 * The unit that the calls of an endpoint are charged by, besides the price of a request.
 *
 * - `tokens`: input and output.
 * - `input`: input only; the output has no tokens.
 * - `images`: images made, or the tokens that they are reported as.
 * - `searches`: searches, or the tokens read.
 * - `seconds`: seconds of video made, or the tokens that they are reported as.
 * - `none`: nothing, not even the price of a request; no money is held.
 */
export type PriceUnit = 'tokens' | 'input' | 'images' | 'searches' | 'seconds' | 'none'

/** The name of a resource that an upstream keeps. */
export interface ResourceName {
  /** `response`, `file`, `vector_store`, `conversation` … Ids of one kind may be those of another. */
  readonly kind: string
  /** The upstream's id, which the caller has too. */
  readonly id: string
}

/** The facts that the gateway reads from a request body. */
export interface RequestFacts {
  readonly model: string
  readonly stream: boolean
  readonly features: ReadonlySet<Feature>
  /** The member that asks for each feature, to name it in a refusal. */
  readonly featureParams: ReadonlyMap<Feature, string>
  readonly estimatedInputTokens: number
  /** The tokens that must fit into a model's window at a time. Defaults to all input tokens. */
  readonly windowTokens?: number
  /** The output limit that the caller asked for, in tokens. */
  readonly maxOutputTokens: number | undefined
  /** The number of answers that were asked for (`n`). */
  readonly answers: number
  /** The highest quantity of the operation's price unit, if the unit is not tokens. */
  readonly units?: number
  readonly messages: number
  readonly tools: number
  readonly images: number
  /** The most web searches that the provider may run for the answer. Absent: none. */
  readonly webSearches?: number
}

/**
 * The kind of an answer or of a finished stream.
 *
 * - `output`: it has output.
 * - `refusal`: the model declined; it counts as an answer, even without text.
 * - `filtered`: stopped by moderation without output.
 * - `no_output`: no output, for a reason, such as a maximum; it counts as an answer.
 * - `empty`: no output, and no reason for it.
 */
export type Substance = 'output' | 'refusal' | 'filtered' | 'no_output' | 'empty'

/** The result of reading a complete answer. */
export interface AnswerReading {
  readonly substance: Substance
  readonly usage: ReportedUsage
  /** Returns the estimated output tokens. It is called only if the usage is missing. */
  estimateOutput(): number
  /** Returns those of them that are audio. Absent: none. */
  estimateAudio?(): number
  /** The upstream's error object, if the answer reports a failure. */
  readonly error?: unknown
  /** Why the answer ended; of several choices the first that is not complete. Absent if nothing is said. */
  readonly finishReason?: FinishReason | undefined
  /** The resources that the upstream keeps of the answer, so that a later request can refer to them. */
  readonly kept?: readonly ResourceName[] | undefined
}

/** The result of reading one event of a stream. */
export interface FrameReading {
  /** Whether the event has output. The first event with output commits the attempt. */
  readonly output: boolean
  /** Whether the caller gets the event; false for the usage chunk that only the gateway asked for. */
  readonly relay: boolean
  /** Whether the answer is complete with this event: each choice has its finish reason. */
  readonly finished: boolean
  /** Whether it is the last event of the protocol. */
  readonly last: boolean
  /** The upstream's error object, if the event is an error. */
  readonly error: unknown
  /** The member with the event's text, if the event contains nothing else of interest. */
  readonly textMember: string | undefined
  /** The parsed data of the event; undefined if it is not JSON: a comment, or the last event. */
  readonly json: object | undefined
}

/** Returns the reading of an event without meaning. Readers set the members that apply. */
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

/** Reads one stream. It stores counts only. */
export interface StreamReader {
  /** Reads one event. Throws SyntaxError if its data is not what the protocol sends. */
  read(event: StreamEvent): FrameReading
  /**
   * Counts the output of an event that differs from an earlier one only in its text.
   *
   * @param delta the text as it is escaped in the event's JSON, UTF-8 read as latin1.
   */
  countText(delta: string): void
  /**
   * Returns events as the caller gets them: without what only the gateway asked for. Absent if there is no such thing.
   *
   * @param events whole events, as UTF-8 read as latin1.
   */
  shown?(events: string): string
  /** Whether every part of the answer that has begun is finished, so that the stream may end here. */
  readonly whole: boolean
  /** The substance of the stream so far. */
  readonly substance: Substance
  /** The usage that was reported so far. */
  readonly usage: ReportedUsage
  /** The estimated output tokens of the events so far. */
  readonly estimatedOutput: number
  /** The part of them that is audio. Absent: none. */
  readonly estimatedAudio?: number
  /** The estimated output tokens since usage was last reported: those that `usage` does not include yet. */
  readonly unreportedOutput: number
  /** Why the answer ended; of several choices the first that is not complete. Absent until it has ended. */
  readonly finishReason?: FinishReason | undefined
  /** The resources that the upstream keeps of the answer, as far as they are known. */
  readonly kept?: readonly ResourceName[] | undefined
  /** The number of the next event, in a protocol that numbers them. Events from the finish on are not counted. */
  readonly nextEventNumber?: number
}

/** Estimates the tokens of a text. */
export type TokenEstimator = (text: string) => number

/** The changes of a body for an upstream. */
export interface UpstreamEdit {
  /** The upstream's name of the model. */
  readonly model: string
}

/** The facts of the request that a stream reader needs. */
export interface StreamReaderOptions {
  /** The caller's body, which may explain that there is no output. It is of another endpoint if the line is translated. */
  readonly json: Readonly<Record<string, unknown>>
  readonly answers: number
}

/** By how many characters of a prompt upstreams are taken to cache it. */
export const PREFIX_CHARS = 1024

/**
 * One endpoint: its schema, the facts of a request, the upstream body, and how answers are read. To add an endpoint,
 * add a file with an operation and a row in `OPERATIONS`.
 */
export interface Operation {
  readonly name: string
  readonly kind: ModelKind
  readonly priceUnit: PriceUnit
  /** The protocol of the endpoint. A line of the same protocol gets the body almost unchanged. */
  readonly protocol: ProtocolName
  /** The inbound path. */
  readonly path: string
  /** The path behind a line's base URL. */
  readonly upstreamPath: string
  /** The name of the endpoint in a line's `endpoints`. Defaults to `upstreamPath` without its slash. */
  readonly endpoint?: string
  /** Whether a body may also be `multipart/form-data`. A line then gets a form, too. */
  readonly acceptsForms?: boolean
  /** The schema of a body. Items of its lists, and members that depend on a type, are checked besides it. */
  readonly schema: z.ZodType
  /** Returns the facts of a body that the schema has accepted. */
  facts(json: Readonly<Record<string, unknown>>, raw: Buffer, estimate: TokenEstimator): RequestFacts
  /** Returns the first characters of the prompt, by which upstreams cache prompts. */
  promptPrefix(json: Readonly<Record<string, unknown>>): string
  /** Whether the upstream may keep something of the answer to this request. If absent, it keeps nothing. */
  keeps?(json: Readonly<Record<string, unknown>>): boolean
  /** Returns the bytes for a line: the caller's own, except for what must differ. */
  upstreamBody(raw: Buffer, json: Readonly<Record<string, unknown>>, edit: UpstreamEdit): Buffer
  /**
   * Reads a complete answer. Throws SyntaxError if it is not one.
   *
   * @param request the caller's body, which may explain that there is no output. It is of another endpoint if the line is
   * translated.
   */
  readAnswer(json: unknown, request?: Readonly<Record<string, unknown>>): AnswerReading
  /**
   * Returns the gateway's own answer from the estimated input tokens, for models whose lines lack the endpoint. If absent,
   * such calls are refused.
   */
  estimatedAnswer?(inputTokens: number): object
  /**
   * Whether `readAnswer` gets a digest, in which long strings and lists of numbers are cut. It avoids a second copy of
   * answers with many megabytes of data.
   */
  readonly answersData?: boolean
  /** Turns answers into streams and back. Undefined if the endpoint does not stream. */
  readonly answerForm?: AnswerForm
  /** Undefined if the endpoint does not stream. */
  streamReader?(options: StreamReaderOptions): StreamReader
  /** The last event of the stream, for an upstream that does not send it. */
  readonly streamTerminator?: string
}

/** An endpoint that can stream. */
export interface StreamingOperation extends Operation {
  streamReader(options: StreamReaderOptions): StreamReader
  readonly streamTerminator: string
}

const NO_FEATURES: ReadonlySet<Feature> = new Set()

/** Returns the features that some members ask for. Most requests ask for none. */
export function featuresOf(featureParams: RequestFacts['featureParams']): ReadonlySet<Feature> {
  return featureParams.size === 0 ? NO_FEATURES : new Set(featureParams.keys())
}

/** Returns the facts of a request without messages, which asks for one answer and no feature but streaming. */
export function plainFacts(
  stream: boolean | null | undefined,
): Omit<RequestFacts, 'model' | 'estimatedInputTokens'> {
  const featureParams = new Map(stream === true ? [['stream', 'stream'] as const] : [])
  return {
    stream: stream === true,
    features: featuresOf(featureParams),
    featureParams,
    maxOutputTokens: undefined,
    answers: 1,
    messages: 0,
    tools: 0,
    images: 0,
  }
}

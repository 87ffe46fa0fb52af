import { serviceTierOf } from '../../catalog/service-tier.ts'
import { parseJson } from '../../json/index.ts'
import type { StreamEvent } from '../../protocols/index.ts'
import { type FinishReason, finishReasonOf, interruptionOf, isModerated } from '../finish-reasons.ts'
import { countRawText, countText, SpeechCount, soleTextMember } from '../metering/output-tokens.ts'
import {
  type FrameReading,
  newReading,
  type ReportedUsage,
  type ResourceName,
  type StreamReader,
  type Substance,
} from '../operation.ts'
import {
  type ChatChoice,
  type ChatOutput,
  type ChoiceForm,
  endsWithoutOutput,
  firstIncomplete,
  hasOutput,
  hasRefusal,
  keptOf,
  outputText,
  readChatUsage,
  textlessTokens,
  usageIn,
} from './chat-answer.ts'

interface ChatChunk {
  object?: unknown
  choices?: unknown
  usage?: unknown
  error?: unknown
  service_tier?: unknown
  /** Groq's, which may hold the usage. */
  x_groq?: { usage?: unknown } | null
}

const TEXT_MEMBERS: ReadonlySet<string> = new Set(['content', 'reasoning_content', 'reasoning'])

/**
 * A `usage` without counts, which upstreams add to every chunk if usage is asked for. In a text its quotes would be
 * escaped.
 */
const NULL_USAGE = /(\{)\s*"usage"\s*:\s*null\s*,|,\s*"usage"\s*:\s*null(?=\s*[,}])/g

const DELTA_CHOICE: ChoiceForm = { output: ({ delta }) => delta ?? {}, textMember: plainTextMember }

/** Reads an OpenAI-style stream of choices. */
export class ChatStreamReader implements StreamReader {
  #answers: number
  #relayUsage: boolean
  #form: ChoiceForm
  readonly #request: Readonly<Record<string, unknown>>
  #choices = new Set<unknown>()
  #finishedChoices = new Set<unknown>()
  #done = false
  #output = false
  #filtered = false
  #refused = false
  /** The last choice that ended without output. */
  #lastChoice: ChatChoice | undefined
  #lastUsage: unknown
  #speech: SpeechCount | undefined
  #shown: { tokens: number } | undefined
  /** The tier of service in the last chunk. */
  #tier: unknown
  usage: ReportedUsage = {}
  finishReason: FinishReason | undefined
  /** The resources that the upstream keeps; undefined as long as there are none. */
  kept: readonly ResourceName[] | undefined
  estimatedOutput = 0
  unreportedOutput = 0

  /**
   * @param options.answers how many choices were asked for.
   * @param options.relayUsage whether the caller asked for the usage chunk.
   * @param options.request the caller's body.
   * @param options.form how to read a choice. Defaults to a delta, as in chat.
   */
  constructor(options: {
    answers: number
    relayUsage: boolean
    request?: Readonly<Record<string, unknown>>
    form?: ChoiceForm
  }) {
    this.#answers = options.answers
    this.#relayUsage = options.relayUsage
    this.#request = options.request ?? {}
    this.#form = options.form ?? DELTA_CHOICE
  }

  /**
   * Whether the last event came, or each choice that has begun is finished. An upstream may send fewer choices than
   * were asked for.
   */
  get whole(): boolean {
    return this.#done || (this.#finishedChoices.size > 0 && this.#finishedChoices.size === this.#choices.size)
  }

  get substance(): Substance {
    if (this.#refused) return 'refusal'
    if (this.#output) return 'output'
    if (this.#filtered) return 'filtered'
    const last = this.#lastChoice
    return last && endsWithoutOutput(last, this.#lastUsage, this.#request) ? 'no_output' : 'empty'
  }

  read({ event, data }: StreamEvent): FrameReading {
    const reading = newReading()
    if (data === '') return reading
    if (data.trim() === '[DONE]') {
      this.#done = true
      return { ...reading, last: true }
    }
    const chunk = parseJson(data) as ChatChunk | null
    if (typeof chunk !== 'object' || chunk === null) throw new SyntaxError('a stream event is not an object')
    reading.json = chunk
    // Some upstreams name the event or the object `error` instead of wrapping the error in a member.
    if (chunk.error || event === 'error' || chunk.object === 'error')
      return { ...reading, error: chunk.error ?? chunk }
    const hasUsage = typeof chunk.usage === 'object' && chunk.usage !== null
    const choices = Array.isArray(chunk.choices) ? (chunk.choices as (ChatChoice | null)[]) : []
    for (const choice of choices) {
      if (!choice) continue
      const error = interruptionOf(choice.finish_reason, choice.error)
      if (error !== undefined) {
        this.finishReason = 'error'
        return { ...reading, error }
      }
      if (this.#readChoice(choice)) reading.output = true
    }
    const usage = hasUsage ? chunk.usage : (usageIn(choices) ?? chunk.x_groq?.usage)
    if (usage !== undefined) {
      this.#lastUsage = usage
      this.#report(readChatUsage(usage))
    }
    // It is in each chunk, and a stream may break off before its usage.
    if (chunk.service_tier && chunk.service_tier !== this.#tier) {
      this.#tier = chunk.service_tier
      const tier = serviceTierOf(chunk.service_tier)
      if (tier !== undefined) this.usage.serviceTier = tier
    }
    reading.finished = this.#finishedChoices.size >= this.#answers
    reading.relay = this.#relayUsage || !hasUsage || choices.length > 0
    if (!hasUsage && choices.length === 1) reading.textMember = this.#form.textMember(choices[0] ?? {})
    return reading
  }

  #readChoice(choice: ChatChoice): boolean {
    this.#choices.add(choice.index ?? 0)
    const delta = this.#form.output(choice)
    const output = hasOutput(delta)
    if (output) {
      this.#output = true
      this.#refused ||= hasRefusal(delta)
      this.#count(countText(outputText(delta)))
      if (delta.audio) this.#hear(delta)
      if (delta.images || delta.reasoning_details || typeof delta.content === 'object') {
        this.#shown ??= { tokens: 0 }
        this.#count(textlessTokens(delta, this.#shown))
      }
    }
    if (finishReasonOf(choice.finish_reason)) {
      this.#finishedChoices.add(choice.index ?? 0)
      this.#filtered ||= isModerated(choice.finish_reason)
      this.finishReason = firstIncomplete(this.finishReason, choice.finish_reason)
      this.#lastChoice = choice
    }
    return output
  }

  shown(events: string): string {
    if (this.#relayUsage || !events.includes('"usage"')) return events
    return events.replace(NULL_USAGE, '$1')
  }

  #hear(delta: ChatOutput): void {
    this.kept ??= keptOf(delta)
    this.#speech ??= new SpeechCount(countText)
    this.#count(this.#speech.add(delta.audio))
  }

  get estimatedAudio(): number {
    return this.#speech?.tokens ?? 0
  }

  countText(delta: string): void {
    this.#count(countRawText(delta))
  }

  #count(tokens: number): void {
    this.estimatedOutput += tokens
    this.unreportedOutput += tokens
  }

  /** Records usage, which some upstreams report in each chunk. */
  #report(report: ReportedUsage): void {
    const isOver = this.#finishedChoices.size >= this.#answers
    const counted = isOver ? report : countedSoFar(report)
    const { outputTokens } = counted
    this.usage = laterChatUsage(this.usage, counted)
    if (outputTokens !== undefined && this.usage.outputTokens === outputTokens) this.unreportedOutput = 0
  }
}

/** Returns the text member of a choice that contains only text. */
function plainTextMember(choice: ChatChoice): string | undefined {
  if (choice.finish_reason || !choice.delta) return undefined
  return soleTextMember(choice.delta, TEXT_MEMBERS)
}

/** Returns what a report before the finish reason counts. A zero there means that the upstream has not counted yet. */
function countedSoFar(report: ReportedUsage): ReportedUsage {
  return {
    ...report,
    ...(!report.inputTokens && NO_INPUT),
    outputTokens: report.outputTokens || undefined,
  }
}

const NO_INPUT: ReportedUsage = {
  inputTokens: undefined,
  cachedInputTokens: undefined,
  cacheWriteTokens: undefined,
  audioInputTokens: undefined,
}

/**
 * Returns the usage of a stream after a further report. Counts are cumulative, so the later one replaces the earlier; but zeros, which some
 * upstreams send wherever they have nothing to say, take nothing back.
 */
function laterChatUsage(before: ReportedUsage, report: ReportedUsage): ReportedUsage {
  const input = report.inputTokens || before.inputTokens === undefined ? report : before
  const output = report.outputTokens || before.outputTokens === undefined ? report : before
  return {
    inputTokens: input.inputTokens,
    cachedInputTokens: input.cachedInputTokens,
    cacheWriteTokens: input.cacheWriteTokens,
    audioInputTokens: input.audioInputTokens,
    outputTokens: output.outputTokens,
    audioOutputTokens: output.audioOutputTokens,
    reasoningTokens: output.reasoningTokens,
    webSearches: report.webSearches ?? before.webSearches,
    ...(before.serviceTier !== undefined && { serviceTier: before.serviceTier }),
  }
}

import { serviceTierOf } from '../../catalog/service-tier.ts'
import { parseJson } from '../../json/index.ts'
import type { StreamEvent } from '../../protocols/index.ts'
import { isModerated } from '../no-output.ts'
import {
  type FrameReading,
  type KeptName,
  newReading,
  type ReportedUsage,
  type StreamReader,
  type Substance,
} from '../operation.ts'
import { SpeechCount } from '../tokens/made-media.ts'
import { countRawText, countText, soleTextMember } from '../tokens/text-delta.ts'
import {
  type ChatChoice,
  type ChoiceForm,
  endsWithoutOutput,
  hasOutput,
  hasRefusal,
  keptOf,
  readChatUsage,
  usageIn,
} from './chat-answer.ts'
import { type ChatOutput, outputText, textlessTokens } from './chat-output.ts'

interface ChatChunk {
  object?: unknown
  choices?: unknown
  usage?: unknown
  error?: unknown
  service_tier?: unknown
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
  /** What the last chunk said of the tier of service. */
  #tier: unknown
  usage: ReportedUsage = {}
  /** What the upstream keeps; undefined as long as there is nothing. */
  kept: readonly KeptName[] | undefined
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
      if (choice.finish_reason === 'error') return { ...reading, error: choice.error ?? {} }
      if (this.#readChoice(choice)) reading.output = true
    }
    const usage = hasUsage ? chunk.usage : usageIn(choices)
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
    if (choice.finish_reason) {
      this.#finishedChoices.add(choice.index ?? 0)
      this.#filtered ||= isModerated(choice.finish_reason)
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

  /**
   * Records usage. Some upstreams report it in each chunk; until the finish reason, a zero means that they have not
   * counted.
   */
  #report(report: ReportedUsage): void {
    const { outputTokens } = report
    const counted = outputTokens !== undefined && (outputTokens > 0 || this.whole)
    this.usage = laterChatUsage(this.usage, counted ? report : { ...report, outputTokens: undefined })
    if (counted && this.usage.outputTokens === outputTokens) this.unreportedOutput = 0
  }
}

/** Returns the text member of a choice that contains only text. */
function plainTextMember(choice: ChatChoice): string | undefined {
  if (choice.finish_reason || !choice.delta) return undefined
  return soleTextMember(choice.delta, TEXT_MEMBERS)
}

/**
 * What a stream has reported, after a further report. Counts run on, so the later one stands; but zeros, which some
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

import type { StreamEvent } from '../protocols/index.ts'
import { hasOutput, hasRefusal, outputText, readChatUsage } from './chat-answer.ts'
import type { FrameReading, ReportedUsage, StreamReader, Substance } from './operation.ts'
import { countTextDelta } from './text-delta.ts'
import { estimateTokens } from './token-estimate.ts'

interface ChatChunk {
  choices?: unknown
  usage?: unknown
  error?: unknown
}

interface ChunkChoice {
  index?: unknown
  delta?: Parameters<typeof hasOutput>[0] | null
  finish_reason?: unknown
}

const DELTA = '"delta":{'
const TEXT_MEMBERS = [
  '"content":"',
  '"reasoning_content":"',
  '"reasoning":"',
  '"content":null,"reasoning_content":"',
] as const

/** Reads an OpenAI-style chat completion stream as it passes. */
export class ChatStreamReader implements StreamReader {
  #answers: number
  #relayUsage: boolean
  #finishedChoices = new Set<unknown>()
  #output = false
  #filtered = false
  #refused = false
  usage: ReportedUsage = {}
  estimatedOutput = 0

  /**
   * @param options.answers how many choices were asked for.
   * @param options.relayUsage whether the caller asked for the usage chunk.
   */
  constructor(options: { answers: number; relayUsage: boolean }) {
    this.#answers = options.answers
    this.#relayUsage = options.relayUsage
  }

  get substance(): Substance {
    if (this.#refused) return 'refusal'
    if (this.#output) return 'output'
    return this.#filtered ? 'filtered' : 'empty'
  }

  read({ data }: StreamEvent): FrameReading {
    const reading = { output: false, relay: true, finished: false, last: false, error: undefined as unknown }
    if (data === '') return reading
    if (data.trim() === '[DONE]') return { ...reading, last: true }
    const chunk = JSON.parse(data) as ChatChunk | null
    if (typeof chunk !== 'object' || chunk === null) throw new SyntaxError('a stream event is not an object')
    if (chunk.error) return { ...reading, error: chunk.error }
    const hasUsage = typeof chunk.usage === 'object' && chunk.usage !== null
    if (hasUsage) this.usage = readChatUsage(chunk.usage)
    const choices = Array.isArray(chunk.choices) ? (chunk.choices as (ChunkChoice | null)[]) : []
    for (const choice of choices) if (choice && this.#readChoice(choice)) reading.output = true
    reading.finished = this.#finishedChoices.size >= this.#answers
    reading.relay = this.#relayUsage || !hasUsage || choices.length > 0
    return reading
  }

  #readChoice(choice: ChunkChoice): boolean {
    const delta = choice.delta ?? {}
    const output = hasOutput(delta)
    if (output) {
      this.#output = true
      this.#refused ||= hasRefusal(delta)
      this.estimatedOutput += estimateTokens(outputText(delta))
    }
    if (choice.finish_reason) {
      this.#finishedChoices.add(choice.index ?? 0)
      this.#filtered ||= choice.finish_reason === 'content_filter'
    }
    return output
  }

  /** A quiet event is one text delta in the shape all providers send, without finish reason, usage or error. */
  skim(text: string, from: number): number {
    let at = from
    const finish = nextSet(text, '"finish_reason"', from)
    const usage = nextSet(text, '"usage"', from)
    while (at < text.length) {
      const end = text.indexOf('\n\n', at) + 2
      if (end < 2) return at
      if (!text.startsWith('data:', at)) return at
      const delta = text.indexOf(DELTA, at)
      if (finish < end || usage < end || delta < 0 || delta > end) return at
      const tokens = countTextDelta(text, delta + DELTA.length, end, TEXT_MEMBERS)
      if (tokens === undefined) return at
      this.#output ||= tokens > 0
      this.estimatedOutput += tokens
      at = end
    }
    return at
  }
}

/** Where `member` next stands with a value other than null; the text's length when nowhere. */
function nextSet(text: string, member: string, from: number): number {
  for (let at = text.indexOf(member, from); at >= 0; at = text.indexOf(member, at + member.length)) {
    if (!text.startsWith(':null', at + member.length)) return at
  }
  return text.length
}

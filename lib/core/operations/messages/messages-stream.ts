import { isText, parseJson } from '../../json/index.ts'
import type { StreamEvent } from '../../protocols/index.ts'
import { explainsNoOutput, isModerated } from '../no-output.ts'
import {
  type FrameReading,
  type KeptName,
  newReading,
  type ReportedUsage,
  type StreamReader,
  type Substance,
} from '../operation.ts'
import { countRawText, countText, soleTextMember } from '../tokens/text-delta.ts'
import {
  type AnswerBlock,
  blockHasOutput,
  blockText,
  keptContainer,
  keptOfBlock,
  keptOfThread,
  sealedIn,
} from './messages-answer.ts'
import { laterMessageCounts, type MessageCounts, messageUsage, readMessageCounts } from './messages-usage.ts'

interface MessageEvent {
  type?: unknown
  message?: { id?: unknown; usage?: unknown; container?: unknown } | null
  content_block?: AnswerBlock | null
  delta?: {
    type?: unknown
    text?: unknown
    thinking?: unknown
    partial_json?: unknown
    content?: unknown
    signature?: unknown
    stop_reason?: unknown
    container?: unknown
  } | null
  usage?: unknown
  error?: unknown
}

const TEXT_MEMBERS: ReadonlySet<string> = new Set(['text', 'thinking', 'partial_json'])

/** Reads an Anthropic-style message stream. */
export class MessageStreamReader implements StreamReader {
  #output = false
  #refused = false
  #finished = false
  #stopReason: unknown
  #lastUsage: unknown
  readonly #request: Readonly<Record<string, unknown>>
  #counts: MessageCounts = {}
  /** What the upstream keeps; undefined as long as there is nothing. */
  kept: readonly KeptName[] | undefined
  estimatedOutput = 0
  unreportedOutput = 0

  /** @param request the caller's body. */
  constructor(request: Readonly<Record<string, unknown>> = {}) {
    this.#request = request
  }

  get whole(): boolean {
    return this.#finished
  }

  get substance(): Substance {
    if (this.#refused) return 'refusal'
    if (this.#output) return 'output'
    const end = { stopReason: this.#stopReason, usage: this.#lastUsage }
    if (isModerated(this.#stopReason)) return 'filtered'
    return this.#finished && explainsNoOutput(end, this.#request) ? 'no_output' : 'empty'
  }

  get usage(): ReportedUsage {
    return messageUsage(this.#counts)
  }

  read({ data }: StreamEvent): FrameReading {
    const reading = newReading()
    reading.finished = this.#finished
    if (data === '') return reading
    const event = parseJson(data) as MessageEvent | null
    if (typeof event !== 'object' || event === null) throw new SyntaxError('a stream event is not an object')
    reading.json = event
    switch (event.type) {
      case 'message_start':
        // The output count in the first event is provisional.
        this.#report({ ...readMessageCounts(event.message?.usage), output: undefined })
        if (this.#request.thread) this.#keep(keptOfThread(event.message ?? {}, this.#request))
        this.#keep(keptContainer(event.message?.container))
        break
      case 'content_block_start':
        reading.output = this.#count(event.content_block ? blockText(event.content_block) : '')
        if (event.content_block) {
          if (blockHasOutput(event.content_block)) reading.output = true
          this.#add(sealedIn(event.content_block))
          this.#keep(keptOfBlock(event.content_block))
        }
        break
      case 'content_block_delta':
        reading.output = this.#count(deltaText(event.delta)) || isText(event.delta?.signature)
        if (event.delta) reading.textMember = soleTextMember(event.delta, TEXT_MEMBERS)
        break
      case 'message_delta':
        if (event.delta?.stop_reason) {
          this.#finished = true
          this.#refused = event.delta.stop_reason === 'refusal'
          this.#stopReason = event.delta.stop_reason
        }
        this.#lastUsage = event.usage
        this.#keep(keptContainer(event.delta?.container))
        this.#report(readMessageCounts(event.usage))
        break
      case 'message_stop':
        reading.last = true
        this.#finished = true
        break
      case 'error':
        return { ...reading, error: event.error ?? {} }
    }
    this.#output ||= reading.output
    return { ...reading, finished: this.#finished }
  }

  #keep(things: readonly KeptName[]): void {
    if (things.length > 0) this.kept = [...(this.kept ?? []), ...things]
  }

  countText(delta: string): void {
    this.#add(countRawText(delta))
  }

  #count(text: string): boolean {
    if (text === '') return false
    this.#add(countText(text))
    return true
  }

  #add(tokens: number): void {
    this.estimatedOutput += tokens
    this.unreportedOutput += tokens
  }

  /**
   * Records usage. The start reports the input, the end the output; each may correct the other. Before the end, a zero
   * is ignored.
   */
  #report(report: MessageCounts): void {
    const { output } = report
    const counted = output !== undefined && (output > 0 || this.#finished)
    this.#counts = laterMessageCounts(this.#counts, counted ? report : { ...report, output: undefined })
    if (counted && this.#counts.output === output) this.unreportedOutput = 0
  }
}

function deltaText(delta: MessageEvent['delta']): string {
  for (const value of [delta?.text, delta?.thinking, delta?.partial_json, delta?.content])
    if (typeof value === 'string') return value
  return ''
}

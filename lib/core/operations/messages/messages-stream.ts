import { isText, objectsIn, parseJson } from '../../json/index.ts'
import type { StreamEvent } from '../../protocols/index.ts'
import {
  explainsNoOutput,
  type FinishReason,
  finishReasonOf,
  interruptionOf,
  isModerated,
} from '../finish-reasons.ts'
import { countRawText, countText, soleTextMember } from '../metering/output-tokens.ts'
import {
  type FrameReading,
  newReading,
  type ReportedUsage,
  type ResourceName,
  type StreamReader,
  type Substance,
} from '../operation.ts'
import {
  type AnswerBlock,
  blockHasOutput,
  blockText,
  countedSoFar,
  keptContainer,
  keptOfBlock,
  keptOfThread,
  laterMessageCounts,
  type MessageCounts,
  messageUsage,
  readMessageCounts,
  sealedIn,
} from './messages-answer.ts'

/** The members of the message in the first event that are read. */
interface BegunMessage {
  id?: unknown
  content?: unknown
  stop_reason?: unknown
  usage?: unknown
  container?: unknown
}

interface MessageEvent {
  type?: unknown
  message?: BegunMessage | null
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
  /** Whether the first event reported an input of zero. */
  #beganAtZero = false
  /** The resources that the upstream keeps; undefined as long as there are none. */
  kept: readonly ResourceName[] | undefined
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

  get finishReason(): FinishReason | undefined {
    return finishReasonOf(this.#stopReason)
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
        reading.output = this.#begin(event.message ?? {})
        break
      case 'content_block_start':
        if (event.content_block) reading.output = this.#beginBlock(event.content_block)
        break
      case 'content_block_delta':
        reading.output = this.#count(deltaText(event.delta)) || isText(event.delta?.signature)
        if (event.delta) reading.textMember = soleTextMember(event.delta, TEXT_MEMBERS)
        break
      case 'message_delta':
        this.#noteEnd(event.delta?.stop_reason, event.usage)
        this.#keep(keptContainer(event.delta?.container))
        this.#report(this.#finished ? this.#countedAtEnd(event.usage) : countedSoFar(event.usage))
        break
      case 'message_stop':
        reading.last = true
        this.#finished = true
        break
      case 'error':
        return { ...reading, error: event.error ?? {} }
    }
    this.#output ||= reading.output
    const error = interruptionOf(this.#stopReason)
    return error === undefined ? { ...reading, finished: this.#finished } : { ...reading, error }
  }

  /** Reads the first event, which may hold blocks, or the whole message. Returns whether it has output. */
  #begin(message: BegunMessage): boolean {
    let hasOutput = false
    for (const block of objectsIn(message.content)) hasOutput = this.#beginBlock(block) || hasOutput
    this.#noteEnd(message.stop_reason, message.usage)
    const counts = countedSoFar(message.usage)
    this.#beganAtZero = readMessageCounts(message.usage).fresh === 0
    // Until the message has ended, the output count is provisional.
    this.#report(this.#finished ? counts : { ...counts, output: undefined })
    if (this.#request.thread) this.#keep(keptOfThread(message, this.#request))
    this.#keep(keptContainer(message.container))
    return hasOutput
  }

  #beginBlock(block: AnswerBlock): boolean {
    const hasText = this.#count(blockText(block))
    this.#add(sealedIn(block))
    this.#keep(keptOfBlock(block))
    return hasText || blockHasOutput(block)
  }

  #noteEnd(stopReason: unknown, usage: unknown): void {
    this.#lastUsage = usage
    if (!stopReason) return
    this.#finished = true
    this.#refused = stopReason === 'refusal'
    this.#stopReason = stopReason
  }

  #keep(resources: readonly ResourceName[]): void {
    if (resources.length > 0) this.kept = [...(this.kept ?? []), ...resources]
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

  /** Reads the usage at the end. If that counts no output either, it confirms the zero at the start. */
  #countedAtEnd(usage: unknown): MessageCounts {
    const counts = readMessageCounts(usage)
    return this.#beganAtZero && counts.output === 0 ? { ...counts, fresh: counts.fresh ?? 0 } : counts
  }

  /** Records usage. The start reports the input, the end the output; each may correct the other. */
  #report(report: MessageCounts): void {
    const { output } = report
    this.#counts = laterMessageCounts(this.#counts, report)
    if (output !== undefined && this.#counts.output === output) this.unreportedOutput = 0
  }
}

function deltaText(delta: MessageEvent['delta']): string {
  for (const value of [delta?.text, delta?.thinking, delta?.partial_json, delta?.content])
    if (typeof value === 'string') return value
  return ''
}

import { type ReasoningMember, unsignedOf } from '../parts/reasoning-details.ts'
import { JsonScanner } from './json-scanner.ts'

/** A content block of the caller's message. */
export interface Block {
  readonly kind: 'text' | 'thinking' | 'tool_use' | 'redacted_thinking'
  /** The block in `content_block_start`, as JSON. */
  readonly start: string
  /** Finds the end of the arguments; for tool calls only. */
  readonly json: JsonScanner | undefined
  /** The signature of a thinking block, sent as the block closes. Empty until it comes. */
  signature: string
  /** Text that came before the block could be opened. */
  buffered: string
  closed: boolean
}

export function newBlock(kind: Block['kind'], content: object): Block {
  const start = JSON.stringify({ type: kind, ...content })
  const json = kind === 'tool_use' ? new JsonScanner() : undefined
  return { kind, start, json, signature: '', buffered: '', closed: false }
}

/**
 * Most UTF-16 units that are buffered until the open block ends; with more, the open block counts as ended. Upstreams that
 * interleave the pieces of several tool calls are rare, and their arguments are short.
 */
const MAX_BUFFERED = 64 * 1024

/** What a block adds to the buffer beside its text. */
const BLOCK_SIZE = 64

const DELTA = {
  text: '{"type":"text_delta","text":',
  thinking: '{"type":"thinking_delta","thinking":',
  tool_use: '{"type":"input_json_delta","partial_json":',
  redacted_thinking: '',
}

/**
 * Writes content blocks one after another, as Anthropic's protocol demands, in whatever order their pieces come. A tool
 * call stays open until its arguments are complete; what comes for other blocks meanwhile is buffered.
 */
export class BlockSequence {
  #index = -1
  #open: Block | undefined
  #queue: Block[] = []
  #buffered = 0
  /** The member in which thinking without a signature came. */
  reasoningMember: ReasoningMember = 'reasoning_content'

  get open(): Block | undefined {
    return this.#open
  }

  /** The block that was added last. */
  get last(): Block | undefined {
    return this.#queue.at(-1) ?? this.#open
  }

  /**
   * Adds a piece of a block. A new block opens as soon as no other is open.
   *
   * @returns the events that can be sent.
   * @throws {RangeError} if the block was closed because too much was buffered behind it.
   */
  add(block: Block, text: string): string {
    if (block === this.#open) return this.#write(block, text) + this.#advance()
    if (block.closed) {
      if (text.trim() === '') return ''
      throw new RangeError('a tool call continued after the next one had to begin')
    }
    if (!this.#queue.includes(block)) {
      this.#queue.push(block)
      this.#buffered += BLOCK_SIZE
    }
    block.buffered += text
    this.#buffered += text.length
    return this.#advance()
  }

  /** Adds a delta of another type to the open block; returns undefined if a block of another kind is open. */
  addDelta(kind: Block['kind'], delta: object): string | undefined {
    return this.#open?.kind === kind ? this.#delta(JSON.stringify(delta)) : undefined
  }

  /** Writes all that is buffered and closes the last block. */
  end(): string {
    let events = this.#close()
    while (this.#queue.length > 0) events += this.#openNext() + this.#close()
    return events
  }

  #advance(): string {
    let events = ''
    while (this.#queue.length > 0 && (this.#mayClose() || this.#buffered > MAX_BUFFERED))
      events += this.#close() + this.#openNext()
    return events
  }

  #mayClose(): boolean {
    return this.#open?.json === undefined || this.#open.json.complete
  }

  #openNext(): string {
    const block = this.#queue.shift()
    if (!block) return ''
    const { buffered, start } = block
    this.#buffered -= buffered.length + BLOCK_SIZE
    block.buffered = ''
    this.#open = block
    this.#index++
    const type = 'content_block_start'
    const event = `event: ${type}\ndata: {"type":"${type}","index":${this.#index},"content_block":${start}}\n\n`
    return event + this.#write(block, buffered)
  }

  #write(block: Block, text: string): string {
    if (text === '') return ''
    block.json?.push(text)
    return this.#delta(`${DELTA[block.kind]}${JSON.stringify(text)}}`)
  }

  #delta(delta: string): string {
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":${delta}}\n\n`
  }

  #close(): string {
    const block = this.#open
    if (!block) return ''
    this.#open = undefined
    block.closed = true
    const signature =
      block.kind === 'thinking'
        ? this.#delta(
            JSON.stringify({
              type: 'signature_delta',
              signature: block.signature || unsignedOf(this.reasoningMember),
            }),
          )
        : ''
    const type = 'content_block_stop'
    return `${signature}event: ${type}\ndata: {"type":"${type}","index":${this.#index}}\n\n`
  }
}

import { type ReasoningMember, unsignedOf } from '../parts/reasoning-details.ts'
import { JsonEnd } from './json-end.ts'

/** A content block of the caller's message. */
export interface Block {
  readonly kind: 'text' | 'thinking' | 'tool_use' | 'redacted_thinking'
  /** What `content_block_start` says of it, as JSON. */
  readonly start: string
  /** Where the arguments of a tool call are. */
  readonly json: JsonEnd | undefined
  /** Of a thinking block; told as it closes. Empty while none has come. */
  signature: string
  /** What has come for it before it could be opened. */
  waiting: string
  closed: boolean
}

export function newBlock(kind: Block['kind'], content: object): Block {
  const start = JSON.stringify({ type: kind, ...content })
  const json = kind === 'tool_use' ? new JsonEnd() : undefined
  return { kind, start, json, signature: '', waiting: '', closed: false }
}

/**
 * How much may wait for the open block to end, in UTF-16 units; beyond, the open block is taken for ended. Tool calls that
 * really are told in turns, piece by piece, are rare, and their arguments are short.
 */
const MOST_WAITING = 64 * 1024

/** What a block takes of that by waiting at all. */
const BLOCK_ITSELF = 64

const DELTA = {
  text: '{"type":"text_delta","text":',
  thinking: '{"type":"thinking_delta","thinking":',
  tool_use: '{"type":"input_json_delta","partial_json":',
  redacted_thinking: '',
}

/**
 * Writes content blocks one after another, as Anthropic's protocol wants them, whatever the order in which their pieces
 * come. A tool call stays open until its arguments are whole; what comes for other blocks meanwhile waits.
 */
export class BlockSequence {
  #index = -1
  #open: Block | undefined
  #queue: Block[] = []
  #waiting = 0
  /** Where thinking that comes without a signature is told. */
  reasoningMember: ReasoningMember = 'reasoning_content'

  /** The block that is written to. */
  get open(): Block | undefined {
    return this.#open
  }

  /** The block that came last. */
  get last(): Block | undefined {
    return this.#queue.at(-1) ?? this.#open
  }

  /**
   * A piece of a block, which opens if it is new and nothing is in the way.
   *
   * @returns the events that can be written.
   * @throws {RangeError} when the block had to be taken for ended.
   */
  add(block: Block, text: string): string {
    if (block === this.#open) return this.#say(block, text) + this.#advance()
    if (block.closed) {
      if (text.trim() === '') return ''
      throw new RangeError('a tool call went on after another had to be told')
    }
    if (!this.#queue.includes(block)) {
      this.#queue.push(block)
      this.#waiting += BLOCK_ITSELF
    }
    block.waiting += text
    this.#waiting += text.length
    return this.#advance()
  }

  /** A delta of another kind for the open block; undefined where that is not the one it belongs to. */
  addDelta(kind: Block['kind'], delta: object): string | undefined {
    return this.#open?.kind === kind ? this.#delta(JSON.stringify(delta)) : undefined
  }

  /** Nothing will come any more: all that waits is written, and the last block closed. */
  end(): string {
    let events = this.#close()
    while (this.#queue.length > 0) events += this.#openNext() + this.#close()
    return events
  }

  #advance(): string {
    let events = ''
    while (this.#queue.length > 0 && (this.#mayClose() || this.#waiting > MOST_WAITING))
      events += this.#close() + this.#openNext()
    return events
  }

  #mayClose(): boolean {
    return this.#open?.json === undefined || this.#open.json.whole
  }

  #openNext(): string {
    const block = this.#queue.shift()
    if (!block) return ''
    const { waiting, start } = block
    this.#waiting -= waiting.length + BLOCK_ITSELF
    block.waiting = ''
    this.#open = block
    this.#index++
    const type = 'content_block_start'
    const event = `event: ${type}\ndata: {"type":"${type}","index":${this.#index},"content_block":${start}}\n\n`
    return event + this.#say(block, waiting)
  }

  #say(block: Block, text: string): string {
    if (text === '') return ''
    block.json?.take(text)
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

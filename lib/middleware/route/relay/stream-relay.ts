import type { IncomingHttpHeaders } from 'node:http'
import { isJsonObject, parseJson } from '../../../core/json/index.ts'
import { BodyCollector } from '../../../core/memory/index.ts'
import type { FrameReading, ResourceName, StreamReader } from '../../../core/operations/index.ts'
import {
  endOfFrame,
  endOfLastFrame,
  MAX_BLANK_LENGTH,
  readFrame,
  type StreamEvent,
} from '../../../core/protocols/index.ts'
import type { UniqueIds } from '../../../core/translate/index.ts'
import { failureOfError } from '../../../routing/attempt/classify-failure.ts'
import {
  emptyAnswer,
  type Failure,
  faultOf,
  filteredAnswer,
  malformed,
} from '../../../routing/attempt/failure.ts'
import { DeltaTemplate } from './delta-template.ts'
import type { TranslatedEvents } from './translated-events.ts'

/** The limit of one event, and of all bytes before the first output. A longer stream is taken for broken. */
const MAX_HELD_BYTES = 16 * 1024 * 1024

export type RelayEnd =
  | {
      readonly kind: 'complete'
      /** The last events, which are written once the call is settled. */
      readonly tail: Buffer
    }
  | { readonly kind: 'failed'; readonly failure: Failure }

/** The facts of a stream at its first output. */
export type Begun = Pick<StreamReader, 'estimatedOutput'> & { readonly kept: readonly ResourceName[] }

/**
 * Relays one event stream: `push` what comes of it, and `take` what the caller gets. Until the first output all events are
 * held back, so that another line can still be tried. Then bytes pass through as they came. From the finish reason on they
 * are held again until the call is settled. Memory holds at most one unfinished event and these held parts.
 *
 * The same rules apply to a translated stream, going by what the line sent; the caller gets the translation of each
 * event instead of its bytes.
 */
export class StreamRelay {
  readonly #reader: StreamReader
  readonly #terminator: string
  readonly #headers: IncomingHttpHeaders
  readonly #template = new DeltaTemplate()
  readonly #takeText: (delta: string) => void
  readonly #translated: TranslatedEvents | undefined
  readonly #ids: UniqueIds | undefined
  /** The event that goes out in place of the one that was just read. */
  #replacement: Buffer | undefined
  #state: 'waiting' | 'flowing' | 'holding' | 'ended' = 'waiting'
  readonly #partial = new PartialEvent()
  /** Copied together: thousands of small events would take far more memory than their bytes, and a write each. */
  #held = new BodyCollector(MAX_HELD_BYTES)
  readonly #bounds = new EventBounds()
  #ready: Buffer[] = []
  /** Whether the first output has come: no other line can be tried from then on. */
  committed = false
  /** The things that the line keeps, and the estimated tokens, as known at the first output. */
  atCommit: Begun = { kept: [], estimatedOutput: 0 }
  /**
   * Whether all answers that were asked for are finished: then the answer is complete even if the upstream's stream breaks
   * off. That there are fewer shows only at a regular end.
   */
  whole = false
  #sawLast = false
  #end: RelayEnd | undefined

  /**
   * @param terminator the protocol's last event, which is added if an upstream omits it.
   * @param translated the translated events, if the caller speaks another protocol than the line.
   * @param headers those of the answer, which may say how long a 429 lasts.
   * @param ids makes the ids of tool calls unique, if nothing is translated and the caller needs them so.
   */
  constructor(
    reader: StreamReader,
    terminator: string,
    translated?: TranslatedEvents,
    headers: IncomingHttpHeaders = {},
    ids?: UniqueIds,
  ) {
    this.#reader = reader
    this.#terminator = terminator
    this.#headers = headers
    this.#translated = translated
    this.#ids = ids
    // Not assigned as a literal: V8 allocates those as old objects, which keep alive what they reference.
    const takeText = (delta: string): void => {
      reader.countText(delta)
      translated?.copy(delta)
    }
    this.#takeText = takeText
  }

  /** Takes a chunk of the upstream's stream. Returns the end once there is one. */
  push(chunk: Buffer): RelayEnd | undefined {
    const { seam, size } = this.#partial
    const text = seam + chunk.toString('latin1')
    const found = endOfLastFrame(text)
    if (found < 0) {
      this.#partial.add(chunk, text)
      if (this.#partial.size <= MAX_HELD_BYTES) return undefined
      return this.#fail(malformed('an event of the stream does not end'))
    }
    const bytes = size > 0 ? this.#partial.takeWith(chunk) : chunk
    const end = size - seam.length + found
    if (end < bytes.length) this.#partial.add(bytes.subarray(end), text)
    return this.#relay(bytes, size > 0 ? bytes.toString('latin1', 0, end) : text.slice(0, end))
  }

  /** Returns the bytes that can go out since the last call. There are none before the first output. */
  take(): readonly Buffer[] {
    const ready = this.#ready
    this.#ready = []
    return ready
  }

  /** Handles the end of the upstream's stream. */
  finish(): RelayEnd {
    const rest = this.#partial.takeWith(Buffer.from('\n\n'))
    const text = rest.toString()
    const isCut = isCutEvent(text)
    const end = isCut || text.trim() === '' ? undefined : this.#relay(rest, rest.toString('latin1'))
    if (end) return end
    const isOver = this.whole || (this.#reader.whole && !isCut)
    // Usage may come after the finish reason, and show why there is no output.
    if (this.#state === 'waiting' && isOver) this.#decide(false, true)
    if (this.#end) return this.#end
    if (isOver) return this.#complete()
    if (this.#state === 'flowing') return this.#fail(malformed('the stream ended without a finish reason'))
    return this.#fail(malformed('the stream ended before it began'))
  }

  /** Relays whole events. `text` is `bytes` up to the end of the last one, read as latin1. */
  #relay(bytes: Buffer, text: string): RelayEnd | undefined {
    let at = 0
    /** The start of the events that go out together in the next write. */
    let run = 0
    let hasReturns: boolean | undefined
    while (at < text.length && !this.#end) {
      if (this.#state === 'flowing') {
        const skimmed = this.#template.skim(text, at, this.#takeText)
        this.#bounds.credit(skimmed - at)
        at = skimmed
        if (this.#translated) run = at
        if (at >= text.length) break
      }
      hasReturns ??= text.includes('\r')
      const found = endOfFrame(text, at, hasReturns)
      const end = found < 0 ? text.length : found
      const passes = this.#relayEvent(bytes.subarray(at, end), text.slice(at, end))
      if (!passes) {
        if (at > run) this.#ready.push(this.#shown(bytes.subarray(run, at), text.slice(run, at)))
        if (this.#replacement) this.#ready.push(this.#replacement)
        this.#replacement = undefined
        run = end
      }
      at = end
    }
    if (run < at && !this.#end) this.#ready.push(this.#shown(bytes.subarray(run, at), text.slice(run, at)))
    const gathered = this.#translated?.take()
    if (gathered) this.#ready.push(gathered)
    return this.#end
  }

  /** Parses one event. Returns true if it goes out right away. */
  #relayEvent(frame: Buffer, text: string): boolean {
    if (!this.#bounds.admit(frame.length)) {
      this.#fail(malformed('the stream consists of empty events'))
      return false
    }
    const event = readFrame(frame.toString())
    let reading: FrameReading
    try {
      reading = this.#reader.read(event)
    } catch {
      this.#fail(malformed('an event of the stream is not valid JSON'))
      return false
    }
    if (reading.error !== undefined) {
      this.#fail(failureOfError({ error: reading.error }, this.#headers))
      return false
    }
    this.whole ||= reading.finished || reading.last
    if (this.#state === 'waiting')
      this.#decide(reading.output, reading.last || (reading.finished && !this.#mayExplain))
    if (this.#end) return false
    const flows = this.#state === 'flowing' && !reading.finished && !reading.last
    if (this.#state === 'flowing' && !flows) this.#state = 'holding'
    if (this.#translated) this.#translate(this.#translated, reading, text, flows)
    else if (reading.relay && !flows)
      this.#hold(this.#withUniqueIds(event, reading) ?? this.#shown(frame, text))
    if (reading.last) {
      this.#sawLast = true
      if (!this.#end) this.#complete()
    }
    if (this.#translated) return false
    if (flows && reading.textMember !== undefined) this.#template.learn(text, reading.textMember)
    if (flows) this.#replacement = this.#withUniqueIds(event, reading)
    return flows && reading.relay && !this.#replacement
  }

  /** Returns an event with other ids of tool calls; undefined if it stays as it is. */
  #withUniqueIds({ event, data }: StreamEvent, { json }: FrameReading): Buffer | undefined {
    const replaced = isJsonObject(json) ? this.#ids?.replaced(json, data) : undefined
    if (replaced === undefined) return undefined
    return Buffer.from(`${event === undefined ? '' : `event: ${event}\n`}data: ${replaced}\n\n`)
  }

  /** Translates one event. The pattern is dropped, because a parsed event may change how later ones translate. */
  #translate(translated: TranslatedEvents, reading: FrameReading, text: string, flows: boolean): void {
    this.#template.forget()
    const events = reading.last ? '' : this.#guarded(() => translated.push(reading.json, this.whole))
    if (events === undefined) return
    if (!flows) {
      if (events !== '') this.#hold(Buffer.from(events))
      return
    }
    translated.gather(events)
    if (reading.textMember !== undefined && translated.learn(events))
      this.#template.learn(text, reading.textMember)
  }

  /** Whether an event after the finish reason may still show why there is no output. */
  get #mayExplain(): boolean {
    return this.#reader.substance === 'empty'
  }

  /** Commits at the first output, or fails if the answer is over without any. A refusal counts as output. */
  #decide(output: boolean, over: boolean): void {
    if (!output && !over) return
    const { substance } = this.#reader
    if (substance === 'empty' || substance === 'filtered') {
      this.#fail(substance === 'filtered' ? filteredAnswer() : emptyAnswer())
      return
    }
    const { kept = [], estimatedOutput } = this.#reader
    this.committed = true
    this.atCommit = { kept: [...kept], estimatedOutput }
    this.#ready.push(...this.#takeHeld())
    this.#state = 'flowing'
  }

  /** Runs a translator. If it throws, the stream fails. */
  #guarded<T>(make: () => T): T | undefined {
    try {
      return make()
    } catch (error) {
      this.#fail(malformed(`the stream cannot be translated: ${faultOf(error)}`))
      return undefined
    }
  }

  /** Returns events as the caller gets them. `text` is `bytes`, read as latin1. */
  #shown(bytes: Buffer, text: string): Buffer {
    const shown = this.#reader.shown?.(text) ?? text
    return shown === text ? bytes : Buffer.from(shown, 'latin1')
  }

  #hold(frame: Buffer): void {
    if (!this.#held.push(frame)) this.#fail(malformed('the stream sends much and no output'))
  }

  #takeHeld(): readonly Buffer[] {
    const { chunks } = this.#held
    this.#held = new BodyCollector(MAX_HELD_BYTES)
    return chunks
  }

  #complete(): RelayEnd {
    const held = [...this.#takeHeld()]
    const translated = this.#translated
    if (translated) {
      const end = this.#guarded(() => translated.end())
      if (!end) return this.#end as RelayEnd
      held.push(end)
    } else if (!this.#sawLast && this.#terminator !== '') held.push(Buffer.from(this.#terminator))
    this.#state = 'ended'
    const end: RelayEnd = { kind: 'complete', tail: Buffer.concat(held) }
    this.#end = end
    return end
  }

  #fail(failure: Failure): RelayEnd {
    const end: RelayEnd = { kind: 'failed', failure }
    this.#end = end
    return end
  }
}

/** Whether the text behind the last blank line of a stream is the beginning of an event that was cut. */
export function isCutEvent(text: string): boolean {
  if (text.trim() === '') return false
  const { data } = readFrame(text)
  return data.trim() !== '[DONE]' && parseJson(data) === undefined
}

/** Buffers an event whose end has not come yet. It grows in linear time, however small the pieces are. */
class PartialEvent {
  #bytes = Buffer.alloc(0)
  #size = 0
  /** The last characters, which may be the start of the blank line that ends the event. */
  seam = ''

  get size(): number {
    return this.#size
  }

  /**
   * Adds a copy of a piece.
   *
   * @param text a text that ends with the characters of the piece, as UTF-8 read as latin1.
   */
  add(piece: Buffer, text: string): void {
    const size = this.#size + piece.length
    if (size > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(size, 2 * this.#size))
      this.#bytes.copy(grown, 0, 0, this.#size)
      this.#bytes = grown
    }
    piece.copy(this.#bytes, this.#size)
    this.#size = size
    this.seam = text.slice(-Math.min(MAX_BLANK_LENGTH, size))
  }

  /** Empties the buffer, and returns its bytes followed by `rest`. */
  takeWith(rest: Buffer): Buffer {
    const bytes = Buffer.concat([this.#bytes.subarray(0, this.#size), rest])
    this.#bytes = Buffer.alloc(0)
    this.#size = 0
    this.seam = ''
    return bytes
  }
}

/** A stream may have so many events, whatever their size; more only if they have so many bytes each, on average. */
const FREE_EVENTS = 4096
const MIN_EVENT_BYTES = 8

/** Finds out whether a stream consists of empty events. */
class EventBounds {
  #events = 0
  #bytes = 0

  /** Counts the bytes of events that need no look. */
  credit(size: number): void {
    this.#bytes += size
  }

  /** Counts an event. Returns false if there are too many for their size. */
  admit(size: number): boolean {
    this.#bytes += size
    return ++this.#events <= FREE_EVENTS || this.#bytes >= this.#events * MIN_EVENT_BYTES
  }
}

import { Buffer } from 'node:buffer'
import type { StreamFilter } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { isJsonObject, type JsonObject, parseKeepingIntegers } from '../../core/json/index.ts'
import { endOfFrame, readFrame } from '../../core/protocols/index.ts'
import type { Checker } from './checker.ts'
import { dropLogprobs, isJsonText, type Text, textsOf, withoutEscapes } from './texts.ts'

/** A text that comes in pieces, such as the content of a choice or the arguments of a tool. */
interface Channel {
  /** The part that has come and was not sent. */
  text: string
  /** How much of it was checked. */
  checked: number
  /** How much of it may go out. */
  free: number
  /** Whether it is JSON: the arguments of a tool. */
  readonly isJson: boolean
  /** The channels that follow one another, such as those of a choice. */
  readonly group: string
  /** Whether another channel of the group has followed: then nothing stays behind, for it may not continue. */
  isOver: boolean
  /** The end of what was sent while it was over. It is checked again if the channel continues. */
  sent: string
}

/** A piece of a channel in an event. */
interface Piece {
  readonly channel: Channel
  length: number
  readonly member: Text
}

/** An event that waits until its texts may go out. */
interface HeldEvent {
  /** As it came; undefined once a text of it was replaced. */
  frame: string | undefined
  readonly name: string | undefined
  readonly json: JsonObject | undefined
  readonly pieces: readonly Piece[]
  /** Whether it adds to what is answered. */
  readonly isText: boolean
}

/** An event that does not end is not collected without bound. */
const MAX_FRAME_CHARS = 16 * 1024 * 1024

/**
 * Checks a stream in windows. A window is checked together with the end of the one before it, which is sent only then: what
 * lies across the border of two windows is found, too.
 */
export class WindowStream implements StreamFilter {
  readonly #checker: Checker
  readonly #windowChars: number
  readonly #channels = new Map<string, Channel>()
  #events: HeldEvent[] = []
  #unchecked = 0
  /** Whether a text has gone out. Until then all waits, so that a refusal can have a status of its own. */
  #hasBegun = false
  #partial = ''
  readonly #decoder = new TextDecoder()

  constructor(checker: Checker, windowChars: number) {
    this.#checker = checker
    this.#windowChars = windowChars
  }

  async push(bytes: Buffer): Promise<Buffer> {
    await this.#take(this.#decoder.decode(bytes, { stream: true }))
    if (this.#unchecked >= this.#windowChars) await this.#check(Math.floor(this.#windowChars / 2))
    return this.#release(false)
  }

  async end(bytes: Buffer): Promise<Buffer> {
    await this.#take(this.#decoder.decode(bytes))
    const rest = this.#partial
    this.#partial = ''
    if (rest.trim() !== '') await this.#takeFrame(rest)
    await this.#check(0)
    return this.#release(true)
  }

  async #take(text: string): Promise<void> {
    const all = this.#partial + text
    const hasReturns = all.includes('\r')
    let at = 0
    for (let end = endOfFrame(all, at, hasReturns); end >= 0; end = endOfFrame(all, at, hasReturns)) {
      await this.#takeFrame(all.slice(at, end))
      at = end
    }
    this.#partial = all.slice(at)
    if (this.#partial.length > MAX_FRAME_CHARS)
      throw new GatewayError('content_filtered', {
        message: 'An event of the stream is too long to be checked.',
      })
  }

  async #takeFrame(frame: string): Promise<void> {
    const { event: name, data } = readFrame(frame)
    const json = jsonOf(data)
    if (!json) {
      // Not JSON: the last event, a comment, or the text of an app.
      if (data === '' || data.trim() === '[DONE]')
        this.#events.push({ frame, name, json, pieces: [], isText: false })
      else await this.#takeText(frame, name, data)
      return
    }
    const deltas = deltasOf(json)
    if (!deltas) {
      const isReplaced = await this.#checker.checkAll(textsOf(json))
      if (isReplaced) dropLogprobs(json)
      this.#events.push({ frame: isReplaced ? undefined : frame, name, json, pieces: [], isText: false })
      return
    }
    const pieces = deltas.map(({ group, key, member }) => {
      const channel = this.#channelOf(key, group)
      channel.text += member.text
      this.#unchecked += member.text.length
      return { channel, length: member.text.length, member }
    })
    this.#events.push({ frame, name, json, pieces, isText: pieces.length > 0 })
    this.#noteOver(pieces.map(({ channel }) => channel))
  }

  #noteOver(now: readonly Channel[]): void {
    const groups = new Set(now.map(({ group }) => group))
    for (const channel of this.#channels.values())
      if (groups.has(channel.group)) channel.isOver = !now.includes(channel)
  }

  /** Takes an event of an app whose data is plain text. */
  async #takeText(frame: string, name: string | undefined, data: string): Promise<void> {
    const replaced = await this.#checker.check(data)
    const shown =
      replaced === undefined
        ? frame
        : `${name === undefined ? '' : `event: ${name}\n`}${replaced
            .split('\n')
            .map((line) => `data: ${line}\n`)
            .join('')}\n`
    this.#events.push({ frame: shown, name, json: undefined, pieces: [], isText: true })
  }

  #channelOf(key: string, group: string): Channel {
    const known = this.#channels.get(key)
    if (known) return known
    const channel: Channel = {
      text: '',
      checked: 0,
      free: 0,
      isJson: isJsonText(key),
      group,
      isOver: false,
      sent: '',
    }
    this.#channels.set(key, channel)
    return channel
  }

  /** @param most how much of each text stays behind, to be checked again with what follows. */
  async #check(most: number): Promise<void> {
    for (const channel of this.#channels.values()) {
      const held = channel.isOver ? 0 : most
      if (channel.checked < channel.text.length) {
        const { sent, isJson } = channel
        const text = sent + channel.text
        const replaced = await this.#checker.check(isJson ? withoutEscapes(text) : text)
        if (replaced !== undefined) {
          if (!replaced.startsWith(sent)) throw this.#checker.unreplaceable()
          this.#replace(channel, replaced.slice(sent.length), held)
        }
        channel.checked = channel.text.length
      }
      channel.free = Math.max(0, channel.checked - held)
    }
    this.#unchecked = 0
  }

  /** Puts a text into the events of a channel: what may go out into the first one, and what stays behind into the last. */
  #replace(channel: Channel, text: string, held: number): void {
    const pieces = this.#events.flatMap((event) =>
      event.pieces.filter((piece) => piece.channel === channel).map((piece) => ({ event, piece })),
    )
    const last = pieces.length - 1
    const cut = last === 0 ? text.length : cutAt(text, text.length - held)
    for (const [i, { event, piece }] of pieces.entries()) {
      const part = i === 0 ? text.slice(0, cut) : i === last ? text.slice(cut) : ''
      piece.member.set(part)
      piece.length = part.length
      dropLogprobs(event.json)
      event.frame = undefined
    }
    channel.text = text
  }

  /** Returns the events from the first on whose texts may go out. */
  #release(isEnd: boolean): Buffer {
    this.#hasBegun ||= isEnd || this.#events.some((event) => event.isText && isFree(event))
    if (!this.#hasBegun) return Buffer.alloc(0)
    let out = ''
    let count = 0
    for (const event of this.#events) {
      if (!isFree(event)) break
      for (const { channel, length } of event.pieces) {
        const gone = channel.text.slice(0, length)
        channel.sent = channel.isOver ? (channel.sent + gone).slice(-this.#windowChars) : ''
        channel.text = channel.text.slice(length)
        channel.checked -= length
        channel.free -= length
      }
      out += event.frame ?? written(event)
      count++
    }
    this.#events = this.#events.slice(count)
    return Buffer.from(out)
  }
}

/** Whether the texts of an event may go out. */
function isFree({ pieces }: HeldEvent): boolean {
  return pieces.every(({ channel, length }) => length <= channel.free)
}

function written({ name, json }: HeldEvent): string {
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(json)}\n\n`
}

function jsonOf(data: string): JsonObject | undefined {
  if (!data.trimStart().startsWith('{')) return undefined
  try {
    const json = parseKeepingIntegers(data)
    return isJsonObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

/** Where a text can be cut: not within a character of two units. */
function cutAt(text: string, at: number): number {
  if (at <= 0) return 0
  const before = text.charCodeAt(at - 1)
  return before >= 0xd800 && before <= 0xdbff ? at - 1 : at
}

interface Delta {
  /** The name of its channel, and of the channels that it is one of. */
  readonly key: string
  readonly group: string
  readonly member: Text
}

/** Returns the pieces of text that an event adds; undefined if its texts are whole ones. */
function deltasOf(json: JsonObject): readonly Delta[] | undefined {
  if (Array.isArray(json.choices))
    return inPlace(json.choices, 'choices').map((each) => ({ ...each, group: choiceOf(each.key) }))
  const { type, delta } = json
  if (type === 'content_block_delta')
    return inPlace([json], `${json.index}`).map((each) => ({ ...each, group: '' }))
  if (typeof type === 'string' && type.endsWith('.delta') && typeof delta === 'string') {
    const key = `${type} ${json.item_id ?? json.output_index} ${json.content_index ?? ''}`
    return textsOf({ delta }).map(() => ({ key, group: '', member: memberOf(json, 'delta') }))
  }
  return undefined
}

/** Returns the choice of a place such as `choices.0.delta.content`. */
function choiceOf(place: string): string {
  return place.split('.', 2).join('.')
}

function memberOf(json: JsonObject, name: string): Text {
  const members = json as Record<string, unknown>
  return {
    text: members[name] as string,
    set(text) {
      members[name] = text
    },
  }
}

/** Returns the texts of a value, each with its place; items of a list that name an `index` are known by it. */
function inPlace(value: unknown, place: string, depth = 0): Omit<Delta, 'group'>[] {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return []
  if (Array.isArray(value))
    return value.flatMap((item, i) => {
      const index = isJsonObject(item) && typeof item.index === 'number' ? item.index : i
      return inPlace(item, `${place}.${index}`, depth + 1)
    })
  return Object.entries(value).flatMap(([name, member]) => {
    const at = `${place}.${name}`
    if (typeof member !== 'string') return NO_DELTA.has(name) ? [] : inPlace(member, at, depth + 1)
    return textsOf({ [name]: member }).map(() => ({ key: at, member: memberOf(value as JsonObject, name) }))
  })
}

/** Members that repeat the text token by token. They are not checked, and are dropped with the text. */
const NO_DELTA: ReadonlySet<string> = new Set(['logprobs'])
const MAX_DEPTH = 20

import { ChatStreamReader } from '../../../lib/core/operations/chat/chat-stream.ts'
import type { StreamReader } from '../../../lib/core/operations/index.ts'
import { MessageStreamReader } from '../../../lib/core/operations/messages/messages-stream.ts'
import { MessageAsChatStream } from '../../../lib/core/translate/chat-as-messages/stream.ts'
import type { Translation } from '../../../lib/core/translate/index.ts'
import { ChatAsMessageStream } from '../../../lib/core/translate/messages-as-chat/stream.ts'
import { StreamRelay } from '../../../lib/middleware/route/relay/stream-relay.ts'
import { TranslatedEvents } from '../../../lib/middleware/route/relay/translated-events.ts'

/** The protocol of the line; the caller speaks the other one. */
export type LineProtocol = 'openai' | 'anthropic'

/** A line's stream as a relay translated it. */
export interface Relayed {
  /** Everything the caller gets, the tail included. */
  readonly text: string
  /** What was written before the end. */
  readonly flowed: string
  readonly end: 'complete' | 'failed'
  /** What is told of a failure. */
  readonly detail: string | null
  readonly skipped: number
  readonly usage: unknown
  readonly estimated: number
}

export interface RelayOptions {
  /** Where the bytes are cut; modulo their length. */
  readonly cuts?: readonly number[]
  /** Every event is read with care: nothing is learned that others are recognised by. */
  readonly careful?: boolean
  /** What translates it, where that is not what stands between the two protocols. */
  readonly passage?: Pick<Translation, 'stream'>
  /** The caller's request. */
  readonly request?: Record<string, unknown>
}

const BETWEEN: Record<LineProtocol, Pick<Translation, 'stream'>> = {
  anthropic: { stream: (context) => new MessageAsChatStream(context) },
  openai: { stream: (context) => new ChatAsMessageStream(context) },
}

/** Relays a line's stream to a caller of the other protocol. */
export function relayTranslated(
  line: LineProtocol,
  stream: string,
  { cuts = [], careful = false, request = {}, passage = BETWEEN[line] }: RelayOptions = {},
): Relayed {
  const reader = readerOf(line)
  const context = { request, created: 5, estimatedInputTokens: 9 }
  const translator = passage.stream(context)
  if (careful) {
    const read = reader.read.bind(reader)
    reader.read = (event) => ({ ...read(event), textMember: undefined })
  }
  const written: Buffer[] = []
  const sink = { commit() {}, write: (chunk: Buffer) => void written.push(Buffer.from(chunk)) }
  const relay = new StreamRelay(reader, '', sink, new TranslatedEvents(translator, () => reader.usage))
  const bytes = Buffer.from(stream)
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  let end: ReturnType<StreamRelay['push']>
  for (let i = 1; i < edges.length && !end; i++) {
    const chunk = bytes.subarray(edges[i - 1], edges[i])
    if (chunk.length > 0) end = relay.push(Buffer.from(chunk))
  }
  const last = end ?? relay.finish()
  const flowed = Buffer.concat(written).toString()
  return {
    text: flowed + (last.kind === 'complete' ? last.tail.toString() : ''),
    flowed,
    end: last.kind,
    detail: last.kind === 'failed' ? last.failure.detail : null,
    skipped: translator.skipped,
    usage: reader.usage,
    estimated: reader.estimatedOutput,
  }
}

function readerOf(line: LineProtocol): StreamReader {
  return line === 'anthropic'
    ? new MessageStreamReader()
    : new ChatStreamReader({ answers: 1, relayUsage: false })
}

import { isJsonObject, isText, tokenCount } from '../json/index.ts'

/** The meaning of a finish reason of any protocol; `other` if the gateway does not know it. */
export type FinishReason =
  | 'stop'
  | 'tool_calls'
  | 'length'
  | 'content_filter'
  | 'refusal'
  | 'malformed'
  | 'error'
  | 'other'

interface Row {
  /** The reasons of this meaning, in small letters with underscores. */
  readonly reasons: RegExp
  /** OpenAI's `finish_reason`. */
  readonly chat: string
  /** Anthropic's `stop_reason`. */
  readonly message: string
  /** The reason why a response is incomplete; absent if it is complete. */
  readonly incomplete?: string
}

/** The words for an answer that was cut. */
const CUT = { chat: 'length', message: 'max_tokens', incomplete: 'max_output_tokens' }

/**
 * The finish reasons of all protocols: OpenAI's `finish_reason`, Anthropic's `stop_reason`, and the `status` of a response
 * or the `reason` in its `incomplete_details`. The first row that fits counts.
 */
const ROWS: Readonly<Record<Exclude<FinishReason, 'other'>, Row>> = {
  stop: {
    reasons: /^(?:stop|stop_sequence|end_turn|end|eos|eos_token|complete|completed|finished)$/,
    chat: 'stop',
    message: 'end_turn',
  },
  // The model waits for the results of its tool calls.
  tool_calls: { reasons: /^(?:tool|function)_(?:calls?|use)$/, chat: 'tool_calls', message: 'tool_use' },
  // Some upstreams add what for, as Google does: `content_filter: SAFETY`.
  content_filter: {
    reasons:
      /^(?:content_filter|guardrail_intervened)|(?:^|_)(?:safety|recitation|prohibited_content|toxic)$|^(?:sensitive|blocklist|spii|model_armor)$/,
    chat: 'content_filter',
    message: 'refusal',
    incomplete: 'content_filter',
  },
  // OpenAI reports a refusal in `message.refusal`.
  refusal: { reasons: /^refusal$/, chat: 'stop', message: 'refusal' },
  // The model wrote a tool call that the provider could not read: Google's reasons, and those of Bedrock.
  malformed: { reasons: /(?:^|_)malformed_|^unexpected_tool_call$/, ...CUT },
  // The answer met a maximum, or the provider paused it.
  length: {
    reasons:
      /(?:^|_)(?:length|max|limit|incomplete|truncated|truncation)(?:_|$)|context_window|^too_many_|^(?:pause_turn|compaction)$/,
    ...CUT,
  },
  // A fault of the provider ended the answer.
  error: {
    reasons:
      /(?:^|_)(?:error|fail|failed|failure|fault|abort|aborted|cancel|cancelled|canceled|exception|shutdown|terminated|timeout|unavailable|overloaded|disconnected)(?:_|$)|interrupt|preempt|^insufficient_(?:system_)?resource/,
    ...CUT,
  },
}

const MEANINGS = Object.entries(ROWS) as readonly [keyof typeof ROWS, Row][]

/** No known reason is longer. */
const MAX_LENGTH = 100

/**
 * Returns what a finish reason means; undefined if none is given.
 *
 * @example finishReasonOf('MAX_TOKENS') // 'length'
 */
export function finishReasonOf(reason: unknown): FinishReason | undefined {
  // Some upstreams write null as text until the answer ends.
  if (reason === undefined || reason === null || reason === '' || reason === 'null') return undefined
  if (typeof reason !== 'string') return 'other'
  const name = nameOf(reason.slice(0, MAX_LENGTH))
  for (const [meaning, { reasons }] of MEANINGS) if (reasons.test(name)) return meaning
  return 'other'
}

/** Returns a reason in small letters with underscores, as most providers write it. */
function nameOf(reason: string): string {
  if (/^[a-z_]+$/.test(reason)) return reason
  const words = reason.replaceAll(/([a-z])(?=[A-Z])/g, '$1_')
  return words.replaceAll(/[^a-z0-9]+/gi, '_').toLowerCase()
}

/** Whether moderation ended an answer. */
export function isModerated(reason: unknown): boolean {
  return finishReasonOf(reason) === 'content_filter'
}

/**
 * Returns the error of an answer that a fault of the provider ended; undefined if none did.
 *
 * @param error the error that came with the reason.
 */
export function interruptionOf(reason: unknown, error?: unknown): unknown {
  if (finishReasonOf(reason) !== 'error') return undefined
  return error ?? { message: `the answer stopped for the reason ${String(reason).slice(0, MAX_LENGTH)}` }
}

/** The content of an answer. Some upstreams end a tool call with `stop`, or an answer without one with `tool_calls`. */
interface AnswerContent {
  readonly toolCalls: boolean
  readonly refusal?: boolean
}

/** Returns OpenAI's `finish_reason` for a finish reason of any protocol. */
export function chatFinishReason(reason: unknown, content: AnswerContent): string {
  return wordsFor(reason, content).chat
}

/** Returns Anthropic's `stop_reason` for a finish reason of any protocol. */
export function messageStopReason(reason: unknown, content: AnswerContent): string {
  return wordsFor(reason, content).message
}

/** Returns why a response is incomplete; undefined if it is complete. */
export function incompleteReason(reason: unknown): string | undefined {
  return wordsFor(reason, { toolCalls: false }).incomplete
}

/** An answer that ended for an unknown reason may have been cut. One that gives no reason counts as complete. */
function wordsFor(reason: unknown, { toolCalls, refusal }: AnswerContent): Omit<Row, 'reasons'> {
  const meaning = finishReasonOf(reason) ?? 'stop'
  if (meaning === 'other') return CUT
  if (meaning !== 'stop' && meaning !== 'tool_calls') return ROWS[meaning]
  return ROWS[toolCalls ? 'tool_calls' : refusal ? 'refusal' : 'stop']
}

type Request = Readonly<Record<string, unknown>>

/** The end of an answer that has no output. */
interface EndWithoutOutput {
  readonly stopReason: unknown
  readonly usage: unknown
}

/**
 * Returns whether there is a reason for an answer without output. It was cut by its maximum, it met the caller's own
 * stop sequence, it reasoned only, none was asked for, or there was nothing to say after a tool's result.
 *
 * @param request the caller's body, of any endpoint.
 */
export function explainsNoOutput({ stopReason, usage }: EndWithoutOutput, request: Request): boolean {
  const meaning = finishReasonOf(stopReason)
  if (stopReason === 'stop_sequence' || !UNEXPLAINED.has(meaning)) return true
  // OpenAI reports a stop sequence and the regular end with the same reason.
  if (stopReason === 'stop' && (hasStops(request.stop) || hasStops(request.stop_sequences))) return true
  // A caller may ask for no output in order to fill the upstream's prompt cache.
  if (request.max_tokens === 0) return true
  return reasoned(usage) || followsToolResult(request)
}

/** The ends that explain nothing: a regular one, and failures that only the upstream can explain. */
const UNEXPLAINED: ReadonlySet<FinishReason | undefined> = new Set([undefined, 'stop', 'malformed', 'error'])

function hasStops(stop: unknown): boolean {
  return isText(stop) || (Array.isArray(stop) && stop.length > 0)
}

function reasoned(usage: unknown): boolean {
  if (!isJsonObject(usage)) return false
  for (const details of [usage.completion_tokens_details, usage.output_tokens_details, usage]) {
    if (!isJsonObject(details)) continue
    if ((tokenCount(details.reasoning_tokens) ?? tokenCount(details.thinking_tokens) ?? 0) > 0) return true
  }
  return false
}

/** Whether the last turn of a conversation is the result of a tool. */
function followsToolResult({ messages, input }: Request): boolean {
  const last: unknown = Array.isArray(messages)
    ? messages.at(-1)
    : Array.isArray(input)
      ? input.at(-1)
      : undefined
  if (!isJsonObject(last)) return false
  const { role, type, content } = last
  if (role === 'tool' || role === 'function') return true
  if (typeof type === 'string' && type.endsWith('_output')) return true
  return Array.isArray(content) && content.some((block) => isJsonObject(block) && isToolResult(block.type))
}

function isToolResult(type: unknown): boolean {
  return typeof type === 'string' && type.endsWith('tool_result')
}

import { tierIn } from '../../catalog/service-tier.ts'
import { isJsonObject, isText, type JsonObject, objectsIn, tokenCount } from '../../json/index.ts'
import { explainsNoOutput, finishReasonOf, interruptionOf, isModerated } from '../finish-reasons.ts'
import { sealedTokens } from '../metering/output-tokens.ts'
import { estimateTokens } from '../metering/token-estimate.ts'
import { searchesInUsage } from '../metering/web-searches.ts'
import type { AnswerReading, ReportedUsage, ResourceName, Substance } from '../operation.ts'

/** The members of an answer's content block that are read. */
export interface AnswerBlock {
  type?: unknown
  text?: unknown
  thinking?: unknown
  signature?: unknown
  input?: unknown
  name?: unknown
  content?: unknown
  /** Of sealed thinking. */
  data?: unknown
}

/** Reads a complete Anthropic-style message. Throws SyntaxError if it is not one. */
export function readMessageAnswer(
  json: unknown,
  request: Readonly<Record<string, unknown>> = {},
): AnswerReading {
  const answer = json as {
    id?: unknown
    content?: unknown
    stop_reason?: unknown
    usage?: unknown
    container?: unknown
  } | null
  if (typeof answer !== 'object' || answer === null || !Array.isArray(answer.content)) {
    throw new SyntaxError('the answer has no "content"')
  }
  const blocks = answer.content.filter(
    (block): block is AnswerBlock => typeof block === 'object' && block !== null,
  )
  const { stop_reason: stopReason, usage } = answer
  const substance = substanceOf(blocks, stopReason)
  const isExplained = substance === 'empty' && explainsNoOutput({ stopReason, usage }, request)
  return {
    substance: isExplained ? 'no_output' : substance,
    usage: messageUsage(readMessageCounts(answer.usage)),
    error: interruptionOf(stopReason),
    finishReason: finishReasonOf(stopReason),
    estimateOutput: () =>
      blocks.reduce((sum, block) => sum + estimateTokens(blockText(block)) + sealedIn(block), 0),
    get kept() {
      return [
        ...keptOfThread(answer, request),
        ...keptContainer(answer.container),
        ...blocks.flatMap(keptOfBlock),
      ]
    },
  }
}

/** Returns the message of a thread, by which the next turn names the thread. */
export function keptOfThread({ id }: { id?: unknown }, { thread }: JsonObject): ResourceName[] {
  return isJsonObject(thread) && typeof id === 'string' ? [{ kind: 'message', id }] : []
}

/** Returns the container that an answer says its tools ran in. */
export function keptContainer(container: unknown): ResourceName[] {
  return isJsonObject(container) && typeof container.id === 'string'
    ? [{ kind: 'container', id: container.id }]
    : []
}

/** Returns the files that a tool of the upstream's made, as its result names them. */
export function keptOfBlock({ type, content }: AnswerBlock): ResourceName[] {
  if (typeof type !== 'string' || !type.endsWith('_tool_result') || !isJsonObject(content)) return []
  return objectsIn(content.content).flatMap(({ file_id: id }) =>
    typeof id === 'string' ? [{ kind: 'file', id }] : [],
  )
}

function substanceOf(blocks: readonly AnswerBlock[], stopReason: unknown): Substance {
  if (stopReason === 'refusal') return 'refusal'
  if (blocks.some(blockHasOutput)) return 'output'
  return isModerated(stopReason) ? 'filtered' : 'empty'
}

/** Whether a block contains output. Only an empty text or thinking block does not; omitted thinking has a signature. */
export function blockHasOutput(block: AnswerBlock): boolean {
  if (block.type === 'text') return isText(block.text)
  if (block.type === 'thinking') return isText(block.thinking) || isText(block.signature)
  return true
}

/** Returns the tokens of thinking that a block has sealed. */
export function sealedIn({ type, data }: AnswerBlock): number {
  return type === 'redacted_thinking' ? sealedTokens(data) : 0
}

/** Returns the text of a block that is counted as output. */
export function blockText(block: AnswerBlock): string {
  if (typeof block.text === 'string') return block.text
  if (typeof block.thinking === 'string') return block.thinking
  // The model has summed up the conversation.
  if (block.type === 'compaction') return typeof block.content === 'string' ? block.content : ''
  const name = typeof block.name === 'string' ? block.name : ''
  return name + (block.input === undefined ? '' : textOf(block.input))
}

/** Returns the JSON of a value; '' for one that is nested too deep for the recursion of `JSON.stringify`. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}

/** The counts of Anthropic-style `usage`. `fresh` excludes tokens that were read from or written to a cache. */
export interface MessageCounts {
  readonly fresh?: number | undefined
  readonly cached?: number | undefined
  readonly written?: number | undefined
  /** The part of `written` that the cache keeps for an hour. */
  readonly anHour?: number | undefined
  readonly output?: number | undefined
  /** The part of `output` that is thinking. */
  readonly thinking?: number | undefined
  /** The web searches that Anthropic ran. */
  readonly searches?: number | undefined
  readonly tier?: string | undefined
  /** The tokens that were spent beside the answer, and are not in the counts above. */
  readonly beside?: MessageCounts | undefined
}

/** The steps of a request that the counts of its answer leave out. */
const BESIDE: ReadonlySet<unknown> = new Set(['compaction', 'advisor_message'])

/** Reads Anthropic-style `usage`. The output includes thinking. */
export function readMessageCounts(usage: unknown): MessageCounts {
  if (typeof usage !== 'object' || usage === null) return {}
  const counts = usage as Record<string, unknown>
  const { cache_creation: writes, output_tokens_details: details } = counts
  const tier = tierIn(counts)
  return {
    fresh: tokenCount(counts.input_tokens),
    cached: tokenCount(counts.cache_read_input_tokens),
    written: tokenCount(counts.cache_creation_input_tokens),
    anHour: isJsonObject(writes) ? tokenCount(writes.ephemeral_1h_input_tokens) : undefined,
    output: tokenCount(counts.output_tokens),
    thinking: isJsonObject(details) ? tokenCount(details.thinking_tokens) : undefined,
    searches: searchesInUsage(counts) ?? 0,
    ...(tier && { tier }),
    beside: besideOf(counts.iterations),
  }
}

/** Reads the usage of an event before the end. A zero there means that the upstream has not counted yet. */
export function countedSoFar(usage: unknown): MessageCounts {
  const counts = readMessageCounts(usage)
  const { fresh, cached, written, output } = counts
  const hasInput = (fresh ?? 0) + (cached ?? 0) + (written ?? 0) > 0
  return {
    ...counts,
    ...(!hasInput && { fresh: undefined, cached: undefined, written: undefined, anHour: undefined }),
    output: output || undefined,
  }
}

/** Adds up the steps beside the answer; undefined if none are reported. */
function besideOf(iterations: unknown): MessageCounts | undefined {
  const steps = objectsIn(iterations).filter(({ type }) => BESIDE.has(type))
  if (steps.length === 0) return undefined
  return steps.map((step) => readMessageCounts({ ...step, iterations: undefined })).reduce(sumOf)
}

function sumOf(one: MessageCounts, other: MessageCounts): MessageCounts {
  const sum = (count: Exclude<keyof MessageCounts, 'beside' | 'tier'>): number | undefined =>
    one[count] === undefined ? other[count] : one[count] + (other[count] ?? 0)
  return {
    fresh: sum('fresh'),
    cached: sum('cached'),
    written: sum('written'),
    anHour: sum('anHour'),
    output: sum('output'),
    thinking: sum('thinking'),
    searches: sum('searches'),
  }
}

/**
 * Combines two reports of a stream. Counts are cumulative and reported separately, so each later count replaces the
 * earlier one. But if the input or the output of a report is all zero, it replaces nothing.
 */
export function laterMessageCounts(before: MessageCounts, report: MessageCounts): MessageCounts {
  const corrects = (report.fresh ?? 0) + (report.cached ?? 0) + (report.written ?? 0) > 0
  const [first, second] = corrects ? [report, before] : [before, report]
  return {
    fresh: first.fresh ?? second.fresh,
    cached: first.cached ?? second.cached,
    written: first.written ?? second.written,
    anHour: first.anHour ?? second.anHour,
    output: report.output || (before.output ?? report.output),
    thinking: report.thinking ?? before.thinking,
    searches: report.searches || (before.searches ?? report.searches),
    ...((report.tier ?? before.tier) !== undefined && { tier: report.tier ?? before.tier }),
    beside: report.beside ?? before.beside,
  }
}

/** Returns the counts as usage, whose input includes tokens that were read from or written to a cache. */
export function messageUsage(counts: MessageCounts): ReportedUsage {
  const { beside, ...ofAnswer } = counts
  const { fresh, cached, written, anHour, output, thinking, searches } = beside
    ? sumOf(ofAnswer, beside)
    : ofAnswer
  return {
    inputTokens: fresh === undefined ? undefined : fresh + (cached ?? 0) + (written ?? 0),
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    cacheWrite1hTokens: anHour,
    outputTokens: output,
    reasoningTokens: thinking,
    webSearches: searches,
    ...(counts.tier !== undefined && { serviceTier: counts.tier }),
  }
}

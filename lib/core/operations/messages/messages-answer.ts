import { isJsonObject, isText, type JsonObject, objectsIn } from '../../json/index.ts'
import { explainsNoOutput, isModerated } from '../no-output.ts'
import type { AnswerReading, KeptName, Substance } from '../operation.ts'
import { sealedTokens } from '../tokens/made-media.ts'
import { estimateTokens } from '../tokens/token-estimate.ts'
import { messageUsage, readMessageCounts } from './messages-usage.ts'

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
export function keptOfThread({ id }: { id?: unknown }, { thread }: JsonObject): KeptName[] {
  return isJsonObject(thread) && typeof id === 'string' ? [{ kind: 'message', id }] : []
}

/** Returns the container that an answer says its tools ran in. */
export function keptContainer(container: unknown): KeptName[] {
  return isJsonObject(container) && typeof container.id === 'string'
    ? [{ kind: 'container', id: container.id }]
    : []
}

/** Returns the files that a tool of the upstream's made, as its result names them. */
export function keptOfBlock({ type, content }: AnswerBlock): KeptName[] {
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

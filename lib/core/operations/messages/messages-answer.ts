import type { AnswerReading, Substance } from '../operation.ts'
import { estimateTokens } from '../tokens/token-estimate.ts'
import { messageUsage, readMessageCounts } from './messages-usage.ts'

/** A content block of an answer, as far as counting needs it. */
export interface AnswerBlock {
  type?: unknown
  text?: unknown
  thinking?: unknown
  input?: unknown
  name?: unknown
}

/** Reads a whole Anthropic-style message. Throws SyntaxError when it is not one. */
export function readMessageAnswer(json: unknown): AnswerReading {
  const answer = json as { content?: unknown; stop_reason?: unknown; usage?: unknown } | null
  if (typeof answer !== 'object' || answer === null || !Array.isArray(answer.content)) {
    throw new SyntaxError('the answer has no "content"')
  }
  const blocks = answer.content.filter(
    (block): block is AnswerBlock => typeof block === 'object' && block !== null,
  )
  return {
    substance: substanceOf(blocks, answer.stop_reason),
    usage: messageUsage(readMessageCounts(answer.usage)),
    estimateOutput: () => blocks.reduce((sum, block) => sum + estimateTokens(blockText(block)), 0),
  }
}

function substanceOf(blocks: readonly AnswerBlock[], stopReason: unknown): Substance {
  if (stopReason === 'refusal') return 'refusal'
  return blocks.some(blockHasOutput) ? 'output' : 'empty'
}

/** Whether a block carries output. Only an empty text or thinking block does not. */
export function blockHasOutput(block: AnswerBlock): boolean {
  if (block.type === 'text') return typeof block.text === 'string' && block.text !== ''
  if (block.type === 'thinking') return typeof block.thinking === 'string' && block.thinking !== ''
  return true
}

/** The text of a block that is counted as output. */
export function blockText(block: AnswerBlock): string {
  if (typeof block.text === 'string') return block.text
  if (typeof block.thinking === 'string') return block.thinking
  const name = typeof block.name === 'string' ? block.name : ''
  return name + (block.input === undefined ? '' : textOf(block.input))
}

/** JSON.stringify recurses: an input nested a hundred thousand deep is counted as nothing instead of overflowing. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}

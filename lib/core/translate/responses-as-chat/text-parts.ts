import { isJsonObject, type JsonObject, nonEmptyString } from '../../json/index.ts'

export type PartType = 'output_text' | 'refusal' | 'reasoning_text' | 'summary_text'

interface EventNames {
  readonly text: string
  readonly part: string
  /** The member with the position of the part. */
  readonly index: string
}

const CONTENT = { part: 'content_part', index: 'content_index' }

export const EVENT_NAMES: Readonly<Record<PartType, EventNames>> = {
  output_text: { text: 'output_text', ...CONTENT },
  refusal: { text: 'refusal', ...CONTENT },
  reasoning_text: { text: 'reasoning_text', ...CONTENT },
  summary_text: {
    text: 'reasoning_summary_text',
    part: 'reasoning_summary_part',
    index: 'summary_index',
  },
}

/** How the caller gets reasoning. */
export interface ReasoningForm {
  readonly part: 'reasoning_text' | 'summary_text'
  /** Whether its `encrypted_content` holds the text too. */
  readonly isSealed: boolean
}

/** Returns the form of reasoning: in a summary, if the caller asks for one, and sealed, if it asks for that. */
export function reasoningForm({ reasoning, include }: JsonObject): ReasoningForm {
  const asked = isJsonObject(reasoning) && nonEmptyString(reasoning.summary ?? reasoning.generate_summary)
  return {
    part: asked ? 'summary_text' : 'reasoning_text',
    isSealed: Array.isArray(include) && include.includes('reasoning.encrypted_content'),
  }
}

/** Returns the members of a reasoning item that hold its parts. */
export function reasoningParts(parts: readonly JsonObject[]): JsonObject {
  const isSummary = ({ type }: JsonObject): boolean => type === 'summary_text'
  const content = parts.filter((part) => !isSummary(part))
  const summary = parts.filter(isSummary)
  return { summary, ...((content.length > 0 || summary.length === 0) && { content }) }
}

/** Returns a part as an item has it. */
export function partOf(type: PartType, text: string, annotations: readonly JsonObject[]): JsonObject {
  if (type === 'refusal') return { type, refusal: text }
  return type === 'output_text' ? { type, text, annotations: [...annotations], logprobs: [] } : { type, text }
}

import type { JsonObject } from '../translation.ts'

/** A content block of the line's message that has begun and not ended. */
export type OpenBlock = TextBlock | ThinkingBlock | ToolBlock | { readonly kind: 'skipped' }

export interface TextBlock {
  readonly kind: 'text'
  /** Where in the message's content it begins, in UTF-16 units. */
  readonly from: number
  /** What it cites. */
  readonly citations: JsonObject[]
}

export interface ThinkingBlock {
  readonly kind: 'thinking'
  signature: string
  /** Its length so far, in UTF-16 units. */
  units: number
}

export interface ToolBlock {
  readonly kind: 'tool'
  /** Its place among the tool calls. */
  readonly call: number
  /** The arguments as far as the start told them. */
  readonly input: unknown
  /** Whether any have come since. */
  said: boolean
}

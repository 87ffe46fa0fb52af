import type { JsonObject } from '../../json/index.ts'
import type { SearchBlock } from './web-searches.ts'

/** A content block of the line's message that has begun and not ended. */
export type OpenBlock = TextBlock | ThinkingBlock | ToolBlock | SearchBlock | { readonly kind: 'skipped' }

export interface TextBlock {
  readonly kind: 'text'
  /** Where the text begins in the message's content, in UTF-16 units. */
  readonly from: number
  readonly citations: JsonObject[]
}

export interface ThinkingBlock {
  readonly kind: 'thinking'
  signature: string
  /** The length so far, in UTF-16 units. */
  units: number
}

export interface ToolBlock {
  readonly kind: 'tool'
  /** The position among the tool calls. */
  readonly call: number
  /** The arguments in the start of the block. */
  readonly input: unknown
  /** Whether pieces of the arguments have come. */
  hasArguments: boolean
}

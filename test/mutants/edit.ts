import type { Node } from 'oxc-parser'

/** A change to the text of a file: what stands from `start` to `end` becomes `text`. */
export interface Edit {
  /** The kind of change, as the report names it. */
  readonly operator: string
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Where a node stands. */
export interface Place {
  readonly source: string
  /** The nodes around it, the nearest last. */
  readonly around: readonly Node[]
}

/** Puts a text in the place of a node. */
export function replaced(operator: string, node: { start: number; end: number }, text: string): Edit {
  return { operator, start: node.start, end: node.end, text }
}

/** Exchanges an operator, which stands behind its left operand. */
export function exchanged(operator: string, source: string, left: Node, from: string, to: string): Edit {
  const start = source.indexOf(from, left.end)
  return { operator, start, end: start + from.length, text: to }
}

/** Returns the node around, parentheses aside. */
export function parentOf(around: readonly Node[]): Node | undefined {
  const parent = around.at(-1)
  return parent?.type === 'ParenthesizedExpression' ? around.at(-2) : parent
}

import type { Expression, Node, StringLiteral, TemplateLiteral } from 'oxc-parser'
import { type Edit, type Place, parentOf, replaced } from './edit.ts'
import { queryEdits } from './query-text.ts'

const LOGS: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'log'])

/** The changes to a number. */
export function* numberEdits(node: Node, value: number, suffix: string): Iterable<Edit> {
  if (value === 0) return yield replaced('number', node, `1${suffix}`)
  // A round size is not noticed by one more.
  if (value >= 100 && value % 10 === 0) return yield replaced('number', node, `${value * 2}${suffix}`)
  yield replaced('number', node, `${value + 1}${suffix}`)
  if (value > 0) yield replaced('number', node, `${value - 1}${suffix}`)
}

/** The changes to a regular expression. */
export function* regexEdits(node: Extract<Node, { type: 'Literal' }>): Iterable<Edit> {
  if (!('regex' in node)) return
  const { pattern, flags } = node.regex
  if (pattern.startsWith('^')) yield replaced('regex', node, `/${pattern.slice(1)}/${flags}`)
  if (/[^\\]\$$/.test(pattern)) yield replaced('regex', node, `/${pattern.slice(0, -1)}/${flags}`)
  if (flags.includes('i')) yield replaced('regex', node, `/${pattern}/${flags.replace('i', '')}`)
}

/** The changes to a string. Words for people stay: whoever changes one breaks nothing. */
export function* stringEdits(node: StringLiteral | TemplateLiteral, place: Place): Iterable<Edit> {
  const { source, around } = place
  const written = source.slice(node.start, node.end)
  const parent = parentOf(around)
  if (isQuery(written)) yield* queryEdits(node.start, written)
  if (/\s/.test(written) || written.length <= 2 || around.some(isMessage)) return
  if (parent?.type === 'Property' && parent.key === node) return
  if (parent?.type === 'TaggedTemplateExpression' || parent?.type === 'ImportExpression') return
  yield replaced('string', node, "''")
}

/** Also the conditions and assignments that a statement of many rows is made of: they name these rows. */
const isQuery = (text: string) =>
  /\b(select|update|delete from|insert into|values|where|order by|redis\.call|(found|given|excluded)\.)\b/.test(
    text,
  ) && /\s/.test(text)

function isMessage(node: Node): boolean {
  if (node.type === 'ThrowStatement') return true
  if (node.type === 'NewExpression')
    return node.callee.type === 'Identifier' && /Error$/.test(node.callee.name)
  if (node.type !== 'CallExpression') return false
  const callee: Expression = node.callee
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return false
  return LOGS.has(callee.property.name)
}

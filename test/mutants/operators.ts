import type { Node, StringLiteral } from 'oxc-parser'
import { callEdits } from './call-edits.ts'
import { type Edit, exchanged, type Place, parentOf, replaced } from './edit.ts'
import { numberEdits, regexEdits, stringEdits } from './literal-edits.ts'

type Operators = {
  readonly [Type in Node['type']]?: (node: Extract<Node, { type: Type }>, place: Place) => Iterable<Edit>
}

const SWAPPED_BINARY: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '<': '<=',
    '<=': '<',
    '>': '>=',
    '>=': '>',
    '===': '!==',
    '!==': '===',
    '==': '!=',
    '!=': '==',
    '+': '-',
    '-': '+',
    '*': '/',
    '/': '*',
    '%': '*',
    '&': '|',
    '|': '&',
    '<<': '>>',
    '>>': '<<',
  }),
)

const SWAPPED_ASSIGNMENT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '+=': '-=',
    '-=': '+=',
    '*=': '/=',
    '??=': '=',
    '||=': '=',
    '&&=': '=',
  }),
)

/** Expressions for which operators of their own exist, or whose loss nothing could tell. */
const NOT_RETURNED_AS_UNDEFINED: ReadonlySet<Node['type']> = new Set([
  'BinaryExpression',
  'LogicalExpression',
  'ConditionalExpression',
  'UnaryExpression',
  'Literal',
])

/** The changes that are tried, by the type of the node that they change. */
export const OPERATORS: Operators = {
  *IfStatement({ test }) {
    yield { operator: 'condition', start: test.start, end: test.end, text: 'true' }
    yield { operator: 'condition', start: test.start, end: test.end, text: 'false' }
  },
  *WhileStatement({ test }) {
    yield { operator: 'condition', start: test.start, end: test.end, text: 'false' }
  },
  *ConditionalExpression(node, { source }) {
    yield replaced('branch', node, source.slice(node.consequent.start, node.consequent.end))
    yield replaced('branch', node, source.slice(node.alternate.start, node.alternate.end))
  },
  *LogicalExpression(node, { source }) {
    yield replaced('operand', node, source.slice(node.left.start, node.left.end))
    yield replaced('operand', node, source.slice(node.right.start, node.right.end))
  },
  *BinaryExpression(node, { source, around }) {
    const swapped = SWAPPED_BINARY.get(node.operator)
    // `if (a === b)` becomes true and false already.
    const whole = parentOf(around)?.type === 'IfStatement' && /[=!]=/.test(node.operator)
    if (swapped === undefined || whole) return
    yield exchanged('binary', source, node.left, node.operator, swapped)
  },
  *AssignmentExpression(node, { source }) {
    const swapped = SWAPPED_ASSIGNMENT.get(node.operator)
    if (swapped !== undefined) yield exchanged('assignment', source, node.left, node.operator, swapped)
  },
  *UpdateExpression(node, { source }) {
    const swapped = node.operator === '++' ? '--' : '++'
    yield replaced('update', node, source.slice(node.start, node.end).replace(node.operator, swapped))
  },
  *UnaryExpression(node, { source, around }) {
    if (node.operator !== '!' && node.operator !== '-') return
    if (parentOf(around)?.type === 'IfStatement') return
    yield replaced('unary', node, source.slice(node.argument.start, node.argument.end))
  },
  *Literal(node, place) {
    if (typeof node.value === 'boolean') yield replaced('boolean', node, String(!node.value))
    else if ('regex' in node) yield* regexEdits(node)
    else if (typeof node.value === 'string') yield* stringEdits(node as StringLiteral, place)
    else if (typeof node.value === 'number') yield* numberEdits(node, node.value, '')
    else if (typeof node.value === 'bigint') yield* numberEdits(node, Number(node.value), 'n')
  },
  TemplateLiteral: stringEdits,
  *ExpressionStatement(node) {
    const { expression } = node
    if (expression.type === 'AwaitExpression') yield replaced('statement', expression, 'await undefined')
    else if (node.directive == null) yield replaced('statement', node, ';')
  },
  *ThrowStatement(node) {
    yield replaced('statement', node, ';')
  },
  *BreakStatement(node, { around }) {
    if (parentOf(around)?.type !== 'SwitchCase') yield replaced('statement', node, ';')
  },
  *ContinueStatement(node) {
    yield replaced('statement', node, ';')
  },
  *ReturnStatement(node) {
    const { argument } = node
    if (argument && !isUndefined(argument) && !NOT_RETURNED_AS_UNDEFINED.has(argument.type))
      yield replaced('return', node, 'return')
  },
  *ArrowFunctionExpression({ body }) {
    if (body.type === 'BlockStatement' || isUndefined(body) || NOT_RETURNED_AS_UNDEFINED.has(body.type))
      return
    yield replaced('return', body, 'undefined')
  },
  *BlockStatement(node, { source, around }) {
    const parent = parentOf(around)
    // `if (false)` says the same; one statement is removed by itself.
    if (node.body.length < 2 || (parent?.type === 'IfStatement' && parent.consequent === node)) return
    if (around.at(-2)?.type === 'MethodDefinition' && /\bsuper\(/.test(source.slice(node.start, node.end)))
      return
    yield replaced('block', node, '{}')
  },
  *MemberExpression(node, { source }) {
    if (!node.optional) return
    const dot = source.indexOf('?.', node.object.end)
    yield { operator: 'optional chain', start: dot, end: dot + 2, text: node.computed ? '' : '.' }
  },
  *ArrayExpression({ elements }, { source }) {
    const [first, second] = elements
    if (!first || !second || elements.some((element) => element?.type === 'SpreadElement')) return
    const textOf = (node: Node) => source.slice(node.start, node.end)
    const text = `${textOf(second)}, ${textOf(first)}`
    yield { operator: 'array order', start: first.start, end: second.end, text }
    const last = elements.at(-1)
    const before = elements.at(-2)
    if (last && before) yield { operator: 'array element', start: before.end, end: last.end, text: '' }
  },
  CallExpression: callEdits,
}

const isUndefined = (node: Node): boolean => node.type === 'Identifier' && node.name === 'undefined'

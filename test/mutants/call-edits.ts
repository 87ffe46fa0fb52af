import type { CallExpression } from 'oxc-parser'
import { type Edit, type Place, replaced } from './edit.ts'

/** Functions that are called in the place of others, by the text of the callee. */
const SWAPPED_CALLEES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'Math.min': 'Math.max',
    'Math.max': 'Math.min',
    'Math.ceil': 'Math.floor',
    'Math.floor': 'Math.ceil',
    'Math.round': 'Math.floor',
    'Date.now': 'performance.now',
    'performance.now': 'Date.now',
    'Promise.all': 'Promise.race',
    'Promise.allSettled': 'Promise.all',
  }),
)

const SWAPPED_METHODS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    indexOf: 'lastIndexOf',
    lastIndexOf: 'indexOf',
    push: 'unshift',
    unshift: 'push',
    shift: 'pop',
    pop: 'shift',
  }),
)

/** Methods whose call may go, leaving the object. */
const DROPPED_METHODS: ReadonlySet<string> = new Set([
  'concat',
  'filter',
  'normalize',
  'padStart',
  'reverse',
  'slice',
  'sort',
  'subarray',
  'toLowerCase',
  'toReversed',
  'toSorted',
  'toUpperCase',
  'trim',
  'trimEnd',
])

/** The changes to a call. */
export function* callEdits(node: CallExpression, { source }: Place): Iterable<Edit> {
  const { callee } = node
  if (node.optional) {
    const dot = source.indexOf('?.', callee.end)
    yield { operator: 'optional chain', start: dot, end: dot + 2, text: '' }
  }
  const swapped = SWAPPED_CALLEES.get(source.slice(callee.start, callee.end))
  if (swapped !== undefined) yield replaced('function', callee, swapped)
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier' || callee.computed) return
  const { name } = callee.property
  const other = SWAPPED_METHODS.get(name)
  if (other !== undefined) yield replaced('method', callee.property, other)
  if (DROPPED_METHODS.has(name)) {
    yield replaced('method', node, source.slice(callee.object.start, callee.object.end))
  }
}

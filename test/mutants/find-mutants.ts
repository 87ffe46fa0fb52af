import { readFileSync } from 'node:fs'
import { type Node, parseSync, visitorKeys } from 'oxc-parser'
import type { Edit, Place } from './edit.ts'
import { OPERATORS } from './operators.ts'

/** A small change to one file, which some test should notice. */
export interface Mutant extends Edit {
  /** From the root of the project, with slashes. */
  readonly file: string
  /** The first is 1. */
  readonly line: number
  /** The functions and classes around, "" outside of all. */
  readonly within: string
  /** The line with what is changed, and the same changed. With `within` they tell a mutant from others wherever it moves. */
  readonly from: string
  readonly to: string
}

/** TypeScript that has a value; everything else of a type that starts so is erased. */
const WITH_VALUE: ReadonlySet<string> = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSInstantiationExpression',
])

/** Returns every mutant of a file, in the order of the text. */
export function findMutants(file: string): Mutant[] {
  const source = sourceOf(file)
  const found = [...editsOf(parseSync(file, source).program, source, [])]
  found.sort(([one], [other]) => one.start - other.start || one.end - other.end)
  return found.map(([edit, around]) => ({
    ...edit,
    file,
    within: namesOf(around),
    line: source.slice(0, edit.start).split('\n').length,
    from: excerpt(source, edit, source.slice(edit.start, edit.end)),
    to: excerpt(source, edit, edit.text),
  }))
}

/** Returns the text of a mutant's file with the change made. */
export function mutated({ file, start, end, text }: Mutant): string {
  const source = sourceOf(file)
  return source.slice(0, start) + text + source.slice(end)
}

/** Whether a mutant can be run at all. */
export function parses(mutant: Mutant): boolean {
  return parseSync(mutant.file, mutated(mutant)).errors.length === 0
}

const sources = new Map<string, string>()

/** Reads a file once: somebody may go on working on it, and the places of its mutants are those of this text. */
function sourceOf(file: string): string {
  const source = sources.get(file) ?? readFileSync(file, 'utf8')
  sources.set(file, source)
  return source
}

type Found = [edit: Edit, around: readonly Node[]]

function* editsOf(node: Node, source: string, around: readonly Node[]): Iterable<Found> {
  if (node.type.startsWith('TS') && !WITH_VALUE.has(node.type)) return
  if (node.type === 'ImportDeclaration' || node.type === 'ExportAllDeclaration') return
  if (node.type === 'ExportNamedDeclaration' && node.source) return
  const edits = OPERATORS[node.type] as ((node: Node, place: Place) => Iterable<Edit>) | undefined
  for (const edit of edits?.(node, { source, around }) ?? []) yield [edit, around]
  const inside = [...around, node]
  for (const key of visitorKeys[node.type] ?? []) {
    const child = (node as unknown as Record<string, unknown>)[key]
    for (const one of Array.isArray(child) ? child : [child]) {
      if (isNode(one)) yield* editsOf(one, source, inside)
    }
  }
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value

function namesOf(around: readonly Node[]): string {
  const names = around.flatMap((node) => {
    if (node.type === 'VariableDeclarator' && node.init?.type !== 'ArrowFunctionExpression') return []
    const name = 'id' in node ? node.id : node.type === 'MethodDefinition' ? node.key : undefined
    if (name?.type === 'PrivateIdentifier') return [`#${name.name}`]
    return name?.type === 'Identifier' ? [name.name] : []
  })
  return names.join('.')
}

function excerpt(source: string, { start, end }: Edit, text: string): string {
  const head = source.slice(source.lastIndexOf('\n', start - 1) + 1, start)
  const lineEnd = source.indexOf('\n', end)
  const tail = source.slice(end, lineEnd < 0 ? undefined : lineEnd)
  const middle = text.replace(/\s+/g, ' ')
  const short = middle.length <= 100 ? middle : `${middle.slice(0, 70)} … ${middle.slice(-20)}`
  return `${head}${short}${tail}`.trim()
}

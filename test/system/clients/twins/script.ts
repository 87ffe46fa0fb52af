import { createHash } from 'node:crypto'
import { CITIES, FILE_QUESTION, FILLED, HELLO, seen } from '../scenarios.ts'

/** A request as any of the twins understands it. */
export interface Heard {
  /** The tools offered, by name; a tool whose input is the form is what the form is filled in with. */
  readonly tools: readonly { readonly name: string; readonly members: readonly string[] }[]
  /** Whether the text of the answer is to be the form. */
  readonly wantsForm: boolean
  readonly thinks: boolean
  /** Files of the last turn of the user, results of tools included. */
  readonly files: readonly { readonly type: string; readonly bytes: Buffer }[]
  /** Whether it is asked about a file. */
  readonly asksForFile: boolean
  /** How many turns of the model come with what it thought. */
  readonly thoughts: number
  /** The results of tools, in the order of their calls. */
  readonly results: readonly string[]
}

export interface SaidCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** The next answer of the model. */
export interface Said {
  readonly thought: string | undefined
  readonly text: string
  readonly calls: readonly SaidCall[]
}

/** The usage that an answer reported. */
export interface Usage {
  readonly input: number
  readonly output: number
  /** How many turns before it came with what was thought. */
  readonly thoughts: number
  /** Whether this one shows what was thought. */
  readonly shown: boolean
}

/** A request that the real provider would refuse. */
export class Refusal extends Error {
  readonly param: string | undefined

  constructor(message: string, param?: string) {
    super(message)
    this.param = param
  }
}

/** Throws a {@link Refusal} unless a condition holds. */
export function must(condition: unknown, message: string, param?: string): asserts condition {
  if (!condition) throw new Refusal(message, param)
}

/** The next turn: two calls at once, one without arguments, then the answer that their results make. */
export function answerTo({ tools, wantsForm, thinks, files, asksForFile, results }: Heard): Said {
  const thought = thinks ? `thought ${results.length}` : undefined
  const say = (text: string): Said => ({ thought, text, calls: [] })
  const call = (...calls: SaidCall[]): Said => ({ thought, text: '', calls })
  const named = (ending: RegExp) => tools.find(({ name }) => ending.test(name))?.name
  const form = tools.find(({ members }) => members.includes('count'))
  if (form && results.length === 0) return call({ name: form.name, args: FILLED })
  if (wantsForm) return say(JSON.stringify(FILLED))
  const [file] = files
  if (file) return say(seen(file.type, file.bytes.length))
  const read = asksForFile && named(/^(?:Read|view_image)$/)
  if (read) return call({ name: read, args: { file_path: 'a', path: 'a' } })
  const weather = named(/weather$/)
  const clock = named(/clock$/)
  if (!weather || !clock) return say(HELLO)
  if (results.length === 0) return call(...CITIES.map((city) => ({ name: weather, args: { city } })))
  if (results.length === CITIES.length) return call({ name: clock, args: {} })
  return say(`After ${results.join(', ')}.`)
}

/** Whether a text is what was thought in some turn. */
export const isThought = (text: string | undefined): boolean => /^thought \d$/.test(text ?? '')

/** A signature that fits a text, and only it. */
export const sealOf = (text: string): string =>
  createHash('sha256').update(`ours:${text}`).digest('base64url')

/** Three pieces of a text, as a stream has them. */
export function piecesOf(text: string): string[] {
  const third = Math.ceil(text.length / 3)
  return [text.slice(0, third), text.slice(third, 2 * third), text.slice(2 * third)].filter(Boolean)
}

/** Whether a request asks about a file. */
export const isAboutFile = (body: unknown): boolean => JSON.stringify(body).includes(FILE_QUESTION)

/** The bytes of a data URL or of base64 of a type that the providers take. */
export function fileOf(type: string, data: string): { type: string; bytes: Buffer } {
  const bytes = Buffer.from(data, 'base64')
  const begins = { 'image/png': '\x89PNG', 'application/pdf': '%PDF' }[type]
  must(begins !== undefined, `The media type ${type} is not supported.`)
  must(bytes.toString('latin1').startsWith(begins), `The file is not ${type}.`)
  return { type, bytes }
}

export function fileOfDataUrl(url: string): { type: string; bytes: Buffer } {
  const [, type = '', data = ''] = /^data:([^;,]+);base64,(.+)$/s.exec(url) ?? []
  must(type !== '', 'Expected a data URL.')
  return fileOf(type, data)
}

/** Checks that calls and results pair up, in whatever order results come; returns the results in the order of the calls. */
export function pairedResults(
  calls: readonly string[],
  results: ReadonlyMap<string, string>,
): readonly string[] {
  for (const id of results.keys()) must(calls.includes(id), `No tool call found for the result of ${id}.`)
  return calls.map((id) => {
    const result = results.get(id)
    must(result !== undefined, `No tool output found for call ${id}.`)
    return result
  })
}

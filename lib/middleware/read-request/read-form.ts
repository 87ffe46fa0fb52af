import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { BusboyInstance } from '@fastify/busboy'
import { GatewayError } from '../../core/errors/index.ts'
import { jsonExcess, newTally, parseExactly } from '../../core/json/index.ts'
import { FormFile } from '../../core/operations/index.ts'

const FORM_TYPE = /^multipart\/form-data[ \t]*(?:;|$)/i

/** Whether a `Content-Type` is `multipart/form-data`. */
export function isForm(type: string | undefined): type is string {
  return type !== undefined && FORM_TYPE.test(type)
}

/** More parts than any endpoint needs. Each part costs more memory than its bytes. */
const MAX_PARTS = 100
const MAX_NAME_LENGTH = 200
/** The longest value that is not a file. All of it is decoded and written out again in one turn of the event loop. */
const MAX_FIELD_BYTES = 4 * 1024 * 1024

/**
 * Reads a `multipart/form-data` body as JSON. The name of a part is a member, `a[b]` the member `b` of `a`, and `a[]`
 * an item of the list `a`. A field is a string, or JSON if its own type is `application/json`. A file is a {@link
 * FormFile}.
 *
 * @param bytes the whole body, within its limit.
 * @throws {GatewayError} `invalid_request` if it is not a whole form, or has a part that is not accepted.
 */
export async function readForm(type: string, bytes: Buffer): Promise<Record<string, unknown>> {
  let refusal: GatewayError | undefined
  const refuse = (message: string, param?: string): void => {
    refusal ??= new GatewayError('invalid_request', { message, param })
  }
  const json: Record<string, unknown> = {}
  /** The size of the JSON of all parts. */
  const tally = newTally()
  const values = new JsonValues()
  const put = (name: string | undefined, value: unknown): void => {
    const fault = name ? putMember(json, name, value) : 'A part of the body has no name.'
    if (fault) refuse(fault)
  }
  const parser = (await openParser(type))
    .on('field', (name, value, _nameCut, valueCut, _encoding, mimeType) => {
      const part = shown(name)
      if (valueCut)
        refuse(`The part "${part}" is longer than ${MAX_FIELD_BYTES} bytes, and not a file.`, part)
      else if (mimeType !== 'application/json') put(name, value)
      else {
        const excess = jsonExcess(Buffer.from(value), tally)
        const given = excess === undefined ? readJson(value) : undefined
        if (excess !== undefined) refuse(excess, part)
        else if (given === undefined) refuse(`The part "${part}" is not valid JSON.`, part)
        else if (values.fit(given)) put(name, given)
        else refuse(`The JSON in the form has more than ${MAX_VALUES} values, or names too long.`, part)
      }
    })
    .on('file', (name, file, filename, _encoding, mimeType) => {
      const chunks: Buffer[] = []
      file
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => put(name, new FormFile(filename ?? '', mimeType, Buffer.concat(chunks))))
        // The parser reports it, too. Without a listener it would end the process.
        .on('error', () => {})
    })
    .on('partsLimit', () => refuse(`The form has more than ${MAX_PARTS} parts.`))
  await feed(parser, bytes, () => refusal !== undefined)
  if (refusal) throw refusal
  return json
}

async function openParser(type: string): Promise<BusboyInstance> {
  // Most gateways get no form.
  const { Busboy } = await import('@fastify/busboy')
  const limits = { parts: MAX_PARTS, fieldSize: MAX_FIELD_BYTES, headerSize: 8192 }
  try {
    return new Busboy({ headers: { 'content-type': type }, limits })
  } catch {
    throw new GatewayError('invalid_request', { message: 'The Content-Type of the form has no boundary.' })
  }
}

/** So much of a form is read in one turn of the event loop. Of empty parts this takes about 60 ms. */
const SLICE_BYTES = 64 * 1024

/**
 * Feeds a form to its parser, slice by slice. Stops at the first fault.
 *
 * @throws {GatewayError} `invalid_request` if it is not a whole form.
 */
async function feed(parser: BusboyInstance, bytes: Buffer, isRefused: () => boolean): Promise<void> {
  let isBroken = false
  const finished = once(parser, 'finish').catch((cause) => {
    isBroken = true
    throw new GatewayError('invalid_request', { message: 'The body is not a whole multipart form.', cause })
  })
  // It is awaited below, if no part was refused before.
  finished.catch(() => {})
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    await new Promise<void>((resolve) => {
      parser.write(bytes.subarray(at, at + SLICE_BYTES), () => resolve())
    })
    if (isRefused()) return
    await nextTurn()
    if (isBroken) break
  }
  parser.end()
  await finished
}

/** Returns undefined for what is not JSON. */
function readJson(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    return undefined
  }
}

/** More values than the JSON of a form needs. A line may get each as a part, under its whole name. */
const MAX_VALUES = 1000
/** The longest names of a value and of all around it. */
const MAX_PATH_LENGTH = 1000

/** Counts the values in all JSON of a form. */
class JsonValues {
  #left = MAX_VALUES

  /** Whether a further value still fits, with all that is in it. */
  fit(given: unknown): boolean {
    const ahead: [value: unknown, pathLength: number][] = [[given, 0]]
    for (let next = ahead.pop(); next; next = ahead.pop()) {
      const [value, length] = next
      if (this.#left-- <= 0 || length > MAX_PATH_LENGTH) return false
      if (typeof value !== 'object' || value === null) continue
      // Nothing is made of the values of a long list.
      if (Array.isArray(value) && value.length > this.#left) return false
      for (const [name, inner] of Object.entries(value)) ahead.push([inner, length + name.length + 2])
    }
    return true
  }
}

const NAME = /^([^[\]]+)((?:\[[^[\]]*\])*)$/
/** Deeper than the members of any endpoint. */
const MAX_DEPTH = 8

/** Sets the member that a part's name refers to. Returns a message if the name or its position is invalid. */
function putMember(json: Record<string, unknown>, name: string, value: unknown): string | undefined {
  const [, root, rest = ''] = (name.length <= MAX_NAME_LENGTH && NAME.exec(name)) || []
  if (root === undefined) return invalidName(name)
  const path = [root, ...[...rest.matchAll(/\[([^[\]]*)\]/g)].map(([, key = '']) => key)]
  if (path.length > MAX_DEPTH || path.includes('__proto__')) return invalidName(name)
  let at: Record<string, unknown> | unknown[] = json
  for (const [i, key] of path.entries()) {
    if (i === path.length - 1) return putLast(at, key, value) ? undefined : duplicateName(name)
    const next = childOf(at, key, path[i + 1] === '')
    if (!next) return duplicateName(name)
    at = next
  }
  return undefined
}

function putLast(at: Record<string, unknown> | unknown[], key: string, value: unknown): boolean {
  if (Array.isArray(at)) at.push(value)
  else if (Object.hasOwn(at, key)) return false
  else at[key] = value
  return true
}

/** The key is empty in a list, and only there: a container is a list where the key behind it is empty. */
function childOf(
  at: Record<string, unknown> | unknown[],
  key: string,
  isList: boolean,
): Record<string, unknown> | unknown[] | undefined {
  const fresh: Record<string, unknown> | unknown[] = isList ? [] : {}
  if (Array.isArray(at)) {
    at.push(fresh)
    return fresh
  }
  if (!Object.hasOwn(at, key)) at[key] = fresh
  const child = at[key]
  return isContainer(child) && Array.isArray(child) === isList ? child : undefined
}

function isContainer(value: unknown): value is Record<string, unknown> | unknown[] {
  return typeof value === 'object' && value !== null && !(value instanceof FormFile)
}

function invalidName(name: string): string {
  return `The part "${shown(name)}" has an invalid name; write "a", "a[b]" or "a[]".`
}

function duplicateName(name: string): string {
  return `The part "${shown(name)}" occurs twice in the form.`
}

function shown(name: string | undefined): string {
  return (name ?? '').slice(0, MAX_NAME_LENGTH)
}

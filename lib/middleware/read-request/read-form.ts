import { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import { GatewayError } from '../../core/errors/index.ts'
import { FormFile } from '../../core/operations/index.ts'

/** Hands over what a form says, or the error that refuses it. */
export type FormReceiver = (error: unknown, json?: Record<string, unknown>) => void

const FORM_TYPE = /^multipart\/form-data[ \t]*(?:;|$)/i

/** Whether a `Content-Type` is that of a form with files. */
export function isForm(type: string | undefined): type is string {
  return type !== undefined && FORM_TYPE.test(type)
}

/** More than any endpoint has; each costs more than its bytes. */
const MOST_PARTS = 100
const MOST_NAME_LENGTH = 200

/**
 * Reads a `multipart/form-data` body as the JSON that it stands for: a part's name is a member, `a[b]` a member of `a`,
 * `a[]` one more of a list; a field is a string, or JSON where its own type says so, and a file a {@link FormFile}.
 *
 * @param bytes the whole body, within its limit.
 */
export function readForm(type: string, bytes: Buffer, receive: FormReceiver): void {
  let refusal: GatewayError | undefined
  let isOver = false
  const end = (error: unknown): void => {
    if (isOver) return
    isOver = true
    receive(error, error ? undefined : json)
  }
  const refuse = (message: string, param?: string): void => {
    refusal ??= new GatewayError('invalid_request', { message, param })
  }
  const json: Record<string, unknown> = {}
  const put = (name: string | undefined, value: unknown): void => {
    const fault = name ? putMember(json, name, value) : 'A part of the body has no name.'
    if (fault) refuse(fault)
  }
  const parser = openParser(type, bytes.length)
  if (!parser) {
    receive(new GatewayError('invalid_request', { message: 'The Content-Type of the form has no boundary.' }))
    return
  }
  parser
    .on('field', (name, value, _nameCut, _valueCut, _encoding, mimeType) => {
      if (mimeType !== 'application/json') put(name, value)
      else if (!putJson(name, value, put)) refuse(`The part "${shown(name)}" is not valid JSON.`, shown(name))
    })
    .on('file', (name, file, filename, _encoding, mimeType) => {
      const chunks: Buffer[] = []
      file
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => put(name, new FormFile(filename ?? '', mimeType, Buffer.concat(chunks))))
        .on('error', () => refuse(NOT_WHOLE))
    })
    .on('partsLimit', () => refuse(`The form has more than ${MOST_PARTS} parts.`))
    .on('finish', () => end(refusal))
    .on('error', (cause) => end(new GatewayError('invalid_request', { message: NOT_WHOLE, cause })))
  Readable.from(slices(bytes)).pipe(parser)
}

const NOT_WHOLE = 'The body is not a whole multipart form.'

function openParser(type: string, length: number) {
  const limits = { parts: MOST_PARTS, fieldSize: length, headerPairs: 20, headerSize: 8192 }
  try {
    return new Busboy({ headers: { 'content-type': type }, limits })
  } catch {
    return undefined
  }
}

const SLICE_BYTES = 256 * 1024

/** A part of the body at a time, so that other requests have their turn in between. */
function* slices(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES)
}

function putJson(name: string, text: string, put: (name: string, value: unknown) => void): boolean {
  try {
    put(name, JSON.parse(text))
    return true
  } catch {
    return false
  }
}

const NAME = /^([^[\]]+)((?:\[[^[\]]*\])*)$/
/** Deeper than any body is. */
const MOST_DEPTH = 8

/** Puts a value where its name says. Answers what is wrong with the name, or with its place. */
function putMember(json: Record<string, unknown>, name: string, value: unknown): string | undefined {
  const [, root, rest = ''] = (name.length <= MOST_NAME_LENGTH && NAME.exec(name)) || []
  if (root === undefined) return `The part "${shown(name)}" has a name that nothing can have.`
  const path = [root, ...[...rest.matchAll(/\[([^[\]]*)\]/g)].map(([, key = '']) => key)]
  if (path.length > MOST_DEPTH || path.includes('__proto__'))
    return `The part "${shown(name)}" has a name that nothing can have.`
  let at: Record<string, unknown> | unknown[] = json
  for (const [i, key] of path.entries()) {
    if (i === path.length - 1) return putLast(at, key, value) ? undefined : twice(name)
    const next = childOf(at, key, path[i + 1] === '')
    if (!next) return twice(name)
    at = next
  }
  return undefined
}

function putLast(at: Record<string, unknown> | unknown[], key: string, value: unknown): boolean {
  if (Array.isArray(at)) {
    if (key === '') at.push(value)
    return key === ''
  }
  if (key === '' || Object.hasOwn(at, key)) return false
  at[key] = value
  return true
}

function childOf(
  at: Record<string, unknown> | unknown[],
  key: string,
  isList: boolean,
): Record<string, unknown> | unknown[] | undefined {
  const fresh: Record<string, unknown> | unknown[] = isList ? [] : {}
  if (Array.isArray(at)) {
    if (key !== '') return undefined
    at.push(fresh)
    return fresh
  }
  if (key === '') return undefined
  if (!Object.hasOwn(at, key)) at[key] = fresh
  const child = at[key]
  return isContainer(child) && Array.isArray(child) === isList ? child : undefined
}

function isContainer(value: unknown): value is Record<string, unknown> | unknown[] {
  return typeof value === 'object' && value !== null && !(value instanceof FormFile)
}

function twice(name: string): string {
  return `The part "${shown(name)}" stands in the form twice, or under two forms of its name.`
}

function shown(name: string | undefined): string {
  return (name ?? '').slice(0, MOST_NAME_LENGTH)
}

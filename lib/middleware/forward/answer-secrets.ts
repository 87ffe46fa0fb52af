import type { IncomingMessage } from 'node:http'
import { parseJson } from '../../core/json/index.ts'
import { isData } from '../../core/operations/body/references.ts'
import { decoded } from '../../routing/attempt/content-decoding.ts'

/** The members in which providers hand out a credential. */
const SECRET = /^(?:client[_-]?secret|ephemeral[_-]?(?:key|token)|xi[_-]api[_-]key)$/i
/** A member of them with a value, in a text. */
const SECRET_IN_TEXT = /"(?:client[_-]?secret|ephemeral[_-]?(?:key|token)|xi[_-]api[_-]key)"\s*:\s*["{]/i
/** How ephemeral keys of OpenAI begin. */
const EPHEMERAL_KEY = /^ek_\w{8,}/

/** A shorter key, as of a local server, may be any word of an answer. */
const MIN_KEY_LENGTH = 8

const JSON_TYPE = /^[\w.-]+\/(?:[\w.+-]+\+)?json\b/i

/** Whether an answer of a type may hold a credential. */
export function mayHoldSecret(type: string | undefined): boolean {
  return JSON_TYPE.test(type ?? '')
}

/** Longer answers are searched so far: no answer with a credential is as long. */
const MAX_SEARCHED_BYTES = 1024 * 1024

/** Reads the beginning of an answer, most often all of it, and pauses it. */
export async function readBegin(
  exchange: { readonly ended: Promise<unknown>; noteProgress(): void },
  response: IncomingMessage,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const read = new Promise<void>((resolve) => {
    const onData = (chunk: Buffer): void => {
      exchange.noteProgress()
      chunks.push(chunk)
      size += chunk.length
      if (size < MAX_SEARCHED_BYTES) return
      response.off('data', onData).pause()
      resolve()
    }
    response.on('data', onData).on('end', resolve)
  })
  await Promise.race([read, exchange.ended])
  return Buffer.concat(chunks)
}

/**
 * Whether an answer of JSON, or the beginning of one, holds a credential of the upstream, or the key of the line, as one that
 * repeats the headers of its request does.
 *
 * @param encoding its `content-encoding`.
 */
export function holdsSecret(bytes: Buffer, encoding?: string, apiKey?: string): boolean {
  const text = textOf(bytes, encoding)
  if (apiKey !== undefined && apiKey.length >= MIN_KEY_LENGTH && text.includes(apiKey)) return true
  const json = parseJson(text)
  return json === undefined ? SECRET_IN_TEXT.test(text) : namesSecret(json)
}

function textOf(bytes: Buffer, encoding: string | undefined): string {
  try {
    return decoded(bytes, encoding).toString()
  } catch {
    // The beginning of an encoded answer.
    return bytes.toString()
  }
}

function namesSecret(json: unknown): boolean {
  const ahead: unknown[] = [json]
  for (let value = ahead.pop(); value !== undefined; value = ahead.pop()) {
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      const isGiven = typeof member === 'object' ? member !== null : member !== ''
      if (SECRET.test(name) && isGiven) return true
      if (typeof member === 'string' && EPHEMERAL_KEY.test(member)) return true
      if (!isData(name, member, value as Record<string, unknown>)) ahead.push(member)
    }
  }
  return false
}

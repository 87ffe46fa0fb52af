import { createHash, type Hash } from 'node:crypto'
import { isKeptInteger } from '../json/index.ts'

/** Shorter pieces are collected and hashed together; longer ones are hashed without a copy. */
const PIECES_LENGTH = 8192

/**
 * Returns the SHA-256 of a request's method, path and the JSON value of its body, as base64url. Member order, white space
 * and the notation of numbers and strings do not count. Takes one pass over the parsed value, without recursion.
 *
 * Numbers are what JavaScript reads, unless the value keeps its integers beyond 2^53: of the others, those that round to the
 * same number are the same.
 */
export function fingerprintOf(method: string, path: string, body: unknown): string {
  const sink = new PieceHash()
  // Last in, first out. Keys are hashed like any string; the number of members before them separates them from values.
  const ahead: unknown[] = [body, path, method]
  while (ahead.length > 0) {
    const value = ahead.pop()
    switch (typeof value) {
      case 'string':
        sink.string(value)
        break
      case 'number':
        // JSON.stringify would write numbers that overflow as null.
        sink.add(`n${value === 0 ? 0 : value};`)
        break
      case 'object':
        if (value === null) sink.add('z')
        else if (isKeptInteger(value)) sink.add(`i${JSON.stringify(value)};`)
        else addObject(value, ahead, sink)
        break
      case 'boolean':
        sink.add(value ? 't' : 'f')
        break
      case 'bigint':
        sink.add(`i${value};`)
        break
      default:
        sink.add('u')
    }
  }
  return sink.digest()
}

function addObject(value: object, ahead: unknown[], sink: PieceHash): void {
  if (Array.isArray(value)) {
    sink.add(`a${value.length};`)
    for (let i = value.length - 1; i >= 0; i--) ahead.push(value[i])
    return
  }
  if (value instanceof Uint8Array) {
    sink.bytes(value)
    return
  }
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') {
    // JSON.parse makes no such object, but a parser that makes dates does.
    sink.add('j')
    ahead.push(toJSON.call(value))
    return
  }
  const keys = Object.keys(value).sort()
  sink.add(`o${keys.length};`)
  for (let i = keys.length - 1; i >= 0; i--) {
    const key = keys[i] as string
    ahead.push((value as Record<string, unknown>)[key], key)
  }
}

/** Hashes a sequence of pieces. Each begins with its length, so that different sequences differ in their bytes. */
class PieceHash {
  readonly #hash: Hash = createHash('sha256')
  #pieces = ''

  add(piece: string): void {
    this.#pieces += piece
    if (this.#pieces.length > PIECES_LENGTH) this.#flush()
  }

  string(value: string): void {
    // UTF-8 has one replacement for all lone surrogates.
    const wellFormed = value.isWellFormed()
    this.add(`${wellFormed ? 's' : 'w'}${value.length};`)
    if (wellFormed && value.length <= PIECES_LENGTH) {
      this.#pieces += value
      return
    }
    this.#flush()
    this.#hash.update(value, wellFormed ? 'utf8' : 'utf16le')
  }

  bytes(value: Uint8Array): void {
    this.add(`b${value.byteLength};`)
    this.#flush()
    this.#hash.update(value)
  }

  digest(): string {
    this.#flush()
    return this.#hash.digest('base64url')
  }

  #flush(): void {
    if (this.#pieces === '') return
    this.#hash.update(this.#pieces)
    this.#pieces = ''
  }
}

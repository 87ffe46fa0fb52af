import type { Transform } from 'node:stream'
// As a whole: an older Node, which lacks a name, would fail before it could be refused with a clear sentence.
import zlib from 'node:zlib'

/** Beyond this size an answer may be this many times as large as what came. */
const FREE_BYTES = 1024 * 1024
const MAX_RATIO = 100
/** More encodings over each other are not read. */
const MAX_ENCODINGS = 3

type Encoding = 'gzip' | 'deflate' | 'br' | 'zstd'

const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
])

/** Receives a decoded body. Nothing is called after `ended` or `failed`. */
export interface DecodedBody {
  decoded(chunk: Buffer): void
  ended(): void
  failed(detail: string): void
}

/**
 * Returns a decoder for a header `content-encoding`; null if the body has no encoding, undefined if one is unknown.
 */
export function decoderFor(
  header: string | readonly string[] | undefined,
  body: DecodedBody,
): ContentDecoder | null | undefined {
  const encodings = encodingsIn(header)
  if (!encodings) return undefined
  return encodings.length === 0 ? null : new ContentDecoder(encodings, body)
}

/** Decodes a whole short body. @throws Error if it is not encoded as its header says, or much too large. */
export function decoded(bytes: Buffer, header: string | readonly string[] | undefined): Buffer {
  let body = bytes
  for (const encoding of encodingsIn(header) ?? []) {
    const options = { maxOutputLength: Math.max(FREE_BYTES, MAX_RATIO * bytes.length) }
    if (encoding === 'gzip') body = zlib.gunzipSync(body, options)
    else if (encoding === 'br') body = zlib.brotliDecompressSync(body, options)
    else if (encoding === 'zstd') body = zlib.zstdDecompressSync(body, options)
    else body = hasZlibHead(body) ? zlib.inflateSync(body, options) : zlib.inflateRawSync(body, options)
  }
  return body
}

/** Returns the encodings in the order in which they are undone; undefined if one is unknown. */
function encodingsIn(header: string | readonly string[] | undefined): readonly Encoding[] | undefined {
  const names = (Array.isArray(header) ? header.join(',') : String(header ?? ''))
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
  const known = names.flatMap((name) => ENCODINGS.get(name) ?? [])
  return known.length === names.length && known.length <= MAX_ENCODINGS ? known.reverse() : undefined
}

/** Undoes the content encodings of a body as it arrives, up to a bounded size. */
export class ContentDecoder {
  readonly #encodings: readonly Encoding[]
  readonly #body: DecodedBody
  #steps: readonly Transform[] | undefined
  #came = 0
  #made = 0
  #over = false
  #onCut: (() => void) | undefined

  constructor(encodings: readonly Encoding[], body: DecodedBody) {
    this.#encodings = encodings
    this.#body = body
  }

  write(chunk: Buffer): void {
    if (this.#over || chunk.length === 0) return
    this.#came += chunk.length
    this.#steps ??= this.#open(chunk)
    this.#steps[0]?.write(chunk)
  }

  end(): void {
    if (this.#steps) this.#steps[0]?.end()
    else this.#conclude(() => this.#body.ended())
  }

  /** Ends a body that broke off, after all that came of it is decoded. */
  cut(then: () => void): void {
    this.#onCut = then
    this.end()
  }

  pause(): void {
    this.#steps?.at(-1)?.pause()
  }

  resume(): void {
    this.#steps?.at(-1)?.resume()
  }

  /** Ends the decoder. Nothing of its body is used any more. */
  close(): void {
    this.#over = true
    for (const step of this.#steps ?? []) step.destroy()
  }

  #open(first: Buffer): readonly Transform[] {
    const steps = this.#encodings.map((encoding, i) => stepFor(encoding, i === 0 ? first : undefined))
    steps.forEach((step, i) => {
      step.on('error', () => {
        // A slow caller leaves decoded bytes in the last step. They came before the fault, so they count.
        for (let rest = steps.at(-1)?.read(); rest; rest = steps.at(-1)?.read()) this.#take(rest)
        this.#fail('the answer is not encoded as it says')
      })
      const next = steps[i + 1]
      if (next) step.pipe(next)
    })
    steps.at(-1)?.on('data', (chunk: Buffer) => this.#take(chunk))
    steps.at(-1)?.on('end', () => this.#conclude(() => this.#body.ended()))
    return steps
  }

  #take(chunk: Buffer): void {
    if (this.#over) return
    this.#made += chunk.length
    if (this.#made > Math.max(FREE_BYTES, MAX_RATIO * this.#came)) {
      this.#fail('the answer is compressed too far')
      return
    }
    this.#body.decoded(chunk)
  }

  #fail(detail: string): void {
    this.#conclude(() => this.#body.failed(detail))
  }

  #conclude(then: () => void): void {
    if (this.#over) return
    this.close()
    if (this.#onCut) this.#onCut()
    else then()
  }
}

function stepFor(encoding: Encoding, first: Buffer | undefined): Transform {
  if (encoding === 'gzip') return zlib.createGunzip()
  if (encoding === 'br') return zlib.createBrotliDecompress()
  if (encoding === 'zstd') return zlib.createZstdDecompress()
  return !first || hasZlibHead(first) ? zlib.createInflate() : zlib.createInflateRaw()
}

/** Whether bytes begin as zlib's format does. Some servers send `deflate` without it. */
function hasZlibHead(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8
}

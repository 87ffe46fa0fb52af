import type { Transform } from 'node:stream'
import { ENCODINGS, type Encoding, mostDecoded } from '../../core/content-encoding/index.ts'

/** More encodings over each other are not read. */
const MAX_ENCODINGS = 3

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
  for (const encoding of encodingsIn(header) ?? [])
    body = encoding.decode(body, { maxOutputLength: mostDecoded(bytes.length) })
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
    const steps = this.#encodings.map((encoding, i) => encoding.decoder(i === 0 ? first : undefined))
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
    if (this.#made > mostDecoded(this.#came)) {
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

import { Buffer } from 'node:buffer'
import { withinMemory } from './process-memory.ts'

/** Default limit: a longer body is taken for broken. */
const MAX_BYTES = withinMemory(256 * 1024 * 1024)
/** A `Buffer` takes a few hundred bytes itself, so that smaller chunks are copied together. */
const MIN_CHUNK_BYTES = 4096
const MAX_BLOCK_BYTES = 64 * 1024

/** Collects a body up to a limit. It takes about as much memory as the body has bytes, however small the chunks are. */
export class BodyCollector {
  readonly #limit: number
  /** Most bodies come in one chunk. */
  #first: Buffer | undefined
  #more: Buffer[] | undefined
  /** The last small chunks. */
  #block: Buffer | undefined
  #blockSize = 0
  #size = 0
  /** Whether the body is longer than the limit. */
  overflowed = false

  constructor(limit: number = MAX_BYTES) {
    this.#limit = limit
  }

  /** The bytes that were taken. */
  get size(): number {
    return this.#size
  }

  get chunks(): readonly Buffer[] {
    this.#endBlock()
    return this.#first ? [this.#first, ...(this.#more ?? [])] : []
  }

  /** Adds a chunk. Returns false once the body is longer than the limit; the chunks before stay available. */
  push(chunk: Buffer): boolean {
    if (this.overflowed || this.#size + chunk.length > this.#limit) {
      this.overflowed = true
      return false
    }
    this.#size += chunk.length
    if (this.#first) this.#add(chunk)
    else this.#first = chunk
    return true
  }

  /** Returns the whole body. */
  take(): Buffer {
    return this.#first && this.#size === this.#first.length
      ? this.#first
      : Buffer.concat(this.chunks, this.#size)
  }

  #add(chunk: Buffer): void {
    if (chunk.length >= MIN_CHUNK_BYTES) {
      this.#endBlock()
      this.#more ??= []
      this.#more.push(chunk)
      return
    }
    if (!this.#block || this.#blockSize + chunk.length > this.#block.length) {
      this.#endBlock()
      // Not larger than what has come, which bounds what a body of a few bytes takes.
      const size = Math.min(this.#size, MAX_BLOCK_BYTES)
      this.#block = Buffer.allocUnsafe(Math.max(size, chunk.length))
    }
    chunk.copy(this.#block, this.#blockSize)
    this.#blockSize += chunk.length
  }

  #endBlock(): void {
    if (!this.#block) return
    this.#more ??= []
    this.#more.push(this.#block.subarray(0, this.#blockSize))
    this.#block = undefined
    this.#blockSize = 0
  }
}

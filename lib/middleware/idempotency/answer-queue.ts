import type { Logger } from '../../core/call/index.ts'
import type { AnswerStore } from '../../core/idempotency/index.ts'
import { SharedBytes, withinMemory } from '../../core/memory/index.ts'
import { boundedStore } from '../../core/store-guard/index.ts'
import { timeLimit } from '../../core/timing/index.ts'

/** The largest number of bytes that wait. */
const MAX_BYTES = withinMemory(256 * 1024 * 1024)
/** Parts written at the same time. */
const LANES = 2
/** How long the store may write nothing before answers count as lost. */
const SILENT_MS = 1500
/** The longest wait for an answer while the store does write. */
const MAX_WAIT_MS = 10_000
/** The longest pause between two parts, in which others get the store. */
const MAX_PAUSE_MS = 5

interface Waiting {
  readonly requestId: string
  /** Ends the wait. Later calls do nothing. */
  readonly end: (kept: boolean) => void
  readonly pieces: readonly Uint8Array[]
  /** The next piece, and where in it the next part begins. */
  piece: number
  at: number
  part: number
  over: boolean
}

/**
 * Writes answers part by part, one after another of each account, and the accounts in turn: a large answer takes the time
 * of its own call.
 */
export class AnswerQueue {
  readonly #store: AnswerStore
  readonly #logger: Logger
  /** By account, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>()
  /** The accounts of which a part is being written. */
  readonly #writing = new Set<string>()
  readonly #bytes = new SharedBytes(MAX_BYTES)
  #lanes = 0
  #wroteAt = Number.NEGATIVE_INFINITY
  #failing = false

  constructor(store: AnswerStore, logger: Logger) {
    this.#store = boundedStore('answers', store)
    this.#logger = logger
  }

  /** The number of bytes that wait to be written. */
  get bytes(): number {
    return this.#bytes.size
  }

  /** Returns in how many parts an answer is kept. */
  partsOf(pieces: readonly Uint8Array[]): number {
    return Math.ceil(sizeOf(pieces) / this.#store.partBytes)
  }

  /** Deletes an answer. Where that fails, it is deleted as one that no entry points at. */
  drop(requestId: string): void {
    this.#store.drop(requestId).catch((error: unknown) => {
      this.#logger.warn({ err: error, requestId }, 'idempotency: an answer is not deleted yet')
    })
  }

  /** Writes an answer. Resolves to whether it is kept; false also if the account has too much waiting. Never rejects. */
  keep(account: string, requestId: string, pieces: readonly Uint8Array[]): Promise<boolean> {
    const bytes = sizeOf(pieces)
    if (!this.#bytes.hasRoom(account, bytes)) return Promise.resolve(false)
    this.#bytes.add(account, bytes)
    return new Promise((resolve) => {
      const since = performance.now()
      let cancel = (): void => {}
      const waiting: Waiting = {
        requestId,
        pieces,
        piece: 0,
        at: 0,
        part: 0,
        over: false,
        end: (kept) => {
          if (waiting.over) return
          waiting.over = true
          cancel()
          this.#bytes.remove(account, bytes)
          resolve(kept)
        },
      }
      const judge = (): void => {
        const now = performance.now()
        if (now - this.#wroteAt >= SILENT_MS || now - since >= MAX_WAIT_MS) waiting.end(false)
        else cancel = timeLimit(SILENT_MS, judge)
      }
      cancel = timeLimit(SILENT_MS, judge)
      const queue = this.#waiting.get(account)
      if (queue) queue.push(waiting)
      else this.#waiting.set(account, [waiting])
      if (this.#lanes < LANES) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#lanes++
    for (let next = this.#next(); next; next = this.#next()) await this.#writePart(...next)
    this.#lanes--
  }

  /** Returns the account whose turn it is; {@link #writePart} puts it at the end of the queue. */
  #next(): [account: string, queue: Waiting[]] | undefined {
    for (const each of this.#waiting) if (!this.#writing.has(each[0])) return each
    return undefined
  }

  async #writePart(account: string, queue: Waiting[]): Promise<void> {
    this.#writing.add(account)
    const startedAt = performance.now()
    const answer = queue.find(({ over }) => !over)
    if (answer) await this.#write(answer)
    await pause(Math.min(MAX_PAUSE_MS, performance.now() - startedAt))
    this.#writing.delete(account)
    // Answers of the same account may have come meanwhile.
    const left = queue.filter(({ over }) => !over)
    this.#waiting.delete(account)
    if (left.length > 0) this.#waiting.set(account, left)
  }

  async #write(answer: Waiting): Promise<void> {
    try {
      const bytes = partOf(answer, this.#store.partBytes)
      await this.#store.write(answer.requestId, answer.part++, bytes)
      this.#wroteAt = performance.now()
      this.#failing = false
      if (answer.piece === answer.pieces.length) answer.end(true)
    } catch (error) {
      if (!this.#failing) this.#logger.error({ err: error }, 'idempotency: answers cannot be kept')
      this.#failing = true
      answer.end(false)
    }
  }
}

/** Takes the next part of an answer: a copy, because what is sent to a thread takes all of its memory along. */
function partOf(answer: Waiting, partBytes: number): Uint8Array {
  const part = new Uint8Array(Math.min(partBytes, restOf(answer)))
  let filled = 0
  while (filled < part.byteLength) {
    const piece = answer.pieces[answer.piece] as Uint8Array
    const taken = piece.subarray(answer.at, answer.at + part.byteLength - filled)
    part.set(taken, filled)
    filled += taken.byteLength
    answer.at += taken.byteLength
    if (answer.at < piece.byteLength) continue
    answer.piece++
    answer.at = 0
  }
  return part
}

function restOf({ pieces, piece, at }: Waiting): number {
  return sizeOf(pieces.slice(piece)) - at
}

function sizeOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { byteLength }) => sum + byteLength, 0)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (ms < 1) setImmediate(resolve)
    else setTimeout(resolve, ms)
  })
}

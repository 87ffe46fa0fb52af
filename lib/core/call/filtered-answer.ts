import { AsyncLocalStorage } from 'node:async_hooks'
import { isUtf8 } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { AnswerFilter, StreamFilter } from './answer-filter.ts'

type Write = (bytes: Buffer) => unknown
type End = (bytes?: Buffer) => unknown

/** A larger answer is not collected for a filter, and is not sent. */
const MAX_WHOLE_BYTES = 64 * 1024 * 1024

/** The answer whose refusal is being answered: an error handler may take its time, and the handler may still write. */
const refused = new AsyncLocalStorage<FilteredAnswer>()

/** The response of an answer, as its filter holds it. */
interface FilteredResponse {
  /**
   * Has what is written to the answer come to the filter first, past the methods that other libraries have put before it: they
   * take the answer for sent when the handler has ended it.
   */
  takeOver(): void
  /**
   * Keeps the head of an answer that the handler has ended, so that later failures of the handler do not change it, until
   * `release`. `restoreHead` sets it as it was, to be written now.
   */
  holdBack(): { restoreHead(): void; release(): void }
}

/** The answer of a handler of the app on its way through a filter. */
export class FilteredAnswer {
  readonly #res: ServerResponse
  readonly #filterOf: () => AnswerFilter | undefined
  readonly #next: (error: unknown) => void
  readonly #response: FilteredResponse
  #state: 'new' | 'whole' | 'stream' | 'passing' | 'refused' = 'new'
  #isPaused = false
  /** Whether something has passed. It may go out later, and its head with it. */
  #hasPassed = false
  #whole: Buffer[] = []
  #size = 0
  #stream: StreamFilter | undefined
  /** Writes are checked one after the other. */
  #turn: Promise<unknown> = Promise.resolve()
  #hasEnded = false
  /** Set while the handler has ended the answer, and it is still being checked. */
  #heldBack: ReturnType<FilteredResponse['holdBack']> | undefined
  /** The status of the answer that is being collected. */
  #status = 0

  constructor(
    res: ServerResponse,
    filterOf: () => AnswerFilter | undefined,
    next: (error: unknown) => void,
    response: FilteredResponse,
  ) {
    this.#res = res
    this.#filterOf = filterOf
    this.#next = next
    this.#response = response
  }

  /** Whether what is written now comes here first. */
  get isOpen(): boolean {
    return !this.#isPaused && this.#state !== 'passing' && refused.getStore() !== this
  }

  /** Whether a head that is written now has to wait for the first bytes that may go out. */
  get holdsHead(): boolean {
    return this.isOpen && !this.#hasPassed
  }

  write(bytes: Uint8Array, write: Write): boolean {
    if (this.#hasEnded) return true
    this.#decide()
    if (this.#state === 'passing') return write(Buffer.from(bytes)) !== false
    if (this.#state === 'whole') this.#collect(Buffer.from(bytes))
    else if (this.#state === 'stream') {
      const copy = Buffer.from(bytes)
      this.#queue(async (stream) => this.#send(await stream.push(copy), write))
    }
    return true
  }

  end(bytes: Uint8Array, write: Write, end: End): ServerResponse {
    if (this.#hasEnded) return this.#res
    this.#decide()
    const last = Buffer.from(bytes)
    if (this.#state === 'passing') end(last)
    else {
      this.#hasEnded = true
      if (this.#state !== 'refused') this.#heldBack = this.#response.holdBack()
      if (this.#state === 'stream')
        this.#queue(async (stream) => {
          this.#send(await stream.end(last), write)
          if (this.#state === 'stream') this.#pass(end)
        })
      else if (this.#state === 'whole') {
        this.#collect(last)
        void this.#endWhole(end)
      }
    }
    return this.#res
  }

  /** Lets what `write` writes pass. */
  pausedFor(write: () => void): void {
    this.#isPaused = true
    this.#hasPassed = true
    try {
      write()
    } finally {
      this.#isPaused = false
    }
  }

  #decide(): void {
    const { statusCode } = this.#res
    if (this.#state === 'whole' && statusCode !== this.#status && statusCode >= 400) {
      // An error handler answers in place of a handler that failed. What that has written is not sent.
      this.#state = 'new'
      this.#whole = []
      this.#size = 0
    }
    if (this.#state !== 'new') return
    this.#status = statusCode
    const filter = this.#filterOf()
    const type = String(this.#res.getHeader('content-type') ?? '').toLowerCase()
    const isText = type === '' || /^(text\/|application\/([\w.+-]+\+)?json\b)/.test(type)
    // The answer to HEAD has no text.
    if (!filter || statusCode >= 400 || !isText || this.#res.req.method === 'HEAD') {
      this.#state = 'passing'
      return
    }
    if (!isIdentity(this.#res.getHeader('content-encoding'))) {
      this.#refuse(
        new TypeError('guard: the answer is compressed before it is checked; mount compression before guard'),
      )
      return
    }
    if (statusCode === 206) {
      this.#refuse(
        new TypeError(
          'guard: a part of an answer (206) cannot be checked; serve it whole, such as with "acceptRanges: false"',
        ),
      )
      return
    }
    this.#stream = type.startsWith('text/event-stream') ? filter.stream() : undefined
    this.#state = this.#stream ? 'stream' : 'whole'
  }

  #collect(bytes: Buffer): void {
    this.#size += bytes.length
    if (this.#size > MAX_WHOLE_BYTES)
      this.#refuse(
        new Error(
          'guard: the answer is larger than 64 MiB, which is the most that can be checked; send less, or a stream of events',
        ),
      )
    else this.#whole.push(bytes)
  }

  async #endWhole(end: End): Promise<void> {
    const res = this.#res
    const given = Buffer.concat(this.#whole)
    this.#whole = []
    const type = String(res.getHeader('content-type') ?? '')
    // Without a type, bytes that are not UTF-8 are no text.
    if (type === '' && !isUtf8(given)) {
      this.#pass(end, given)
      return
    }
    const written = textOf(given, type)
    try {
      const text = (await this.#filterOf()?.whole(written, type)) ?? written
      if (this.#state !== 'whole') return
      const bytes = text === written ? given : Buffer.from(text)
      this.#releaseHead()
      const declared = res.getHeader('content-length')
      if (declared !== undefined && Number(declared) !== given.length)
        throw new Error(
          `guard: the answer has ${given.length} bytes, and its content-length is ${declared}; set the length of what is sent`,
        )
      if (declared !== undefined) res.setHeader('content-length', bytes.length)
      if (text !== written) {
        // The tag belongs to the content that was replaced.
        res.removeHeader('etag')
        if (CHARSET.test(type)) res.setHeader('content-type', type.replace(CHARSET, 'charset=utf-8'))
      }
      this.#pass(end, bytes)
    } catch (error) {
      this.#refuse(error)
    }
  }

  #queue(run: (stream: StreamFilter) => Promise<void>): void {
    this.#turn = this.#turn.then(async () => {
      if (this.#state !== 'stream' || !this.#stream) return
      try {
        await run(this.#stream)
      } catch (error) {
        this.#refuse(error)
      }
    })
  }

  #send(bytes: Buffer, write: Write): void {
    if (bytes.length === 0 || this.#state !== 'stream') return
    this.#heldBack?.restoreHead()
    this.pausedFor(() => void write(bytes))
  }

  /** Leaves the head as the handler has set it, and lets it be written or replaced. */
  #releaseHead(): void {
    this.#heldBack?.release()
    this.#heldBack = undefined
  }

  /** Ends the answer. Its head and last bytes may go out later, once what the end waits for is done. */
  #pass(end: End, bytes?: Buffer): void {
    this.#releaseHead()
    this.#state = 'passing'
    end(bytes)
  }

  /** Further writes of the handler are dropped. */
  #refuse(error: unknown): void {
    if (this.#state === 'refused') return
    this.#state = 'refused'
    this.#releaseHead()
    const res = this.#res
    if (!res.headersSent) for (const name of CONTENT_HEADERS) res.removeHeader(name)
    this.#response.takeOver()
    refused.run(this, this.#next, error)
  }
}

/** Headers about a content that is not sent. */
const CONTENT_HEADERS = [
  ...['accept-ranges', 'content-encoding', 'content-length', 'content-range', 'content-type'],
  ...['etag', 'last-modified'],
]

/** Whether a header says that an answer is not encoded. */
function isIdentity(encoding: unknown): boolean {
  return encoding === undefined || String(encoding).toLowerCase() === 'identity'
}

const CHARSET = /charset\s*=\s*"?([^\s;"]+)"?/i

function textOf(bytes: Buffer, type: string): string {
  try {
    return new TextDecoder(CHARSET.exec(type)?.[1] ?? 'utf-8').decode(bytes)
  } catch {
    // The charset is unknown.
    return bytes.toString()
  }
}

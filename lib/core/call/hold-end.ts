import type { ServerResponse } from 'node:http'

type EndArguments = Parameters<ServerResponse['end']>

const heldBack = new WeakSet<ServerResponse>()

/** Whether the end of an answer is being held back by {@link holdEnd}. Errors after that are not part of the answer. */
export function isHeldBack(res: ServerResponse): boolean {
  return heldBack.has(res)
}

/** Options of {@link holdEnd}. */
export interface HeldEndOptions {
  /**
   * Returns what the end has to wait for; undefined if nothing. If it throws or rejects, the error is answered instead.
   */
  readonly beforeEnd: () => Promise<void> | undefined
  /** Receives that error: Express's `next`. */
  readonly next: (error: unknown) => void
  /** Receives what is sent. */
  readonly onSend?: (chunk: unknown, encoding: unknown) => void
}

/**
 * Holds back the end of an answer until everything that must be durable is. Meanwhile the answer counts as complete:
 * whatever the handler or an error handler writes then is not part of it.
 */
export function holdEnd(res: ServerResponse, { beforeEnd, next, onSend }: HeldEndOptions): void {
  const { write, end } = res
  let progress: 'open' | 'held back' | 'over' = 'open'

  function heldWrite(this: ServerResponse, ...given: Parameters<ServerResponse['write']>): boolean {
    if (progress === 'open') onSend?.(given[0], given[1])
    return write.apply(this, given)
  }

  function heldEnd(this: ServerResponse, ...given: EndArguments): ServerResponse {
    if (progress === 'held back') return res
    if (progress === 'over') return end.apply(res, given)
    onSend?.(given[0], given[1])
    let waiting: Promise<void> | undefined
    try {
      waiting = beforeEnd()
    } catch (error) {
      progress = 'over'
      next(error)
      return res
    }
    if (!waiting) {
      progress = 'over'
      return end.apply(res, given)
    }
    holdBack(waiting, given)
    return res
  }

  function holdBack(waiting: Promise<void>, given: EndArguments): void {
    progress = 'held back'
    heldBack.add(res)
    const head = new FrozenHead(res)
    const openWrite = res.write
    const noWrite: ServerResponse['write'] = () => true
    res.write = noWrite
    const release = (): void => {
      progress = 'over'
      heldBack.delete(res)
      res.write = openWrite
    }
    const hand = (): void => {
      release()
      head.restore()
      end.apply(res, given)
    }
    const handOther = (error: unknown): void => {
      head.melt()
      release()
      next(error)
    }
    waiting.then(hand, handOther)
  }

  // Not assigned as literals: V8 would allocate those as old objects, which keep the whole call alive until a full
  // collection.
  if (onSend) res.write = heldWrite as ServerResponse['write']
  res.end = heldEnd as ServerResponse['end']
}

/** The status and headers of an answer at the time when it was ended. */
class FrozenHead {
  readonly #res: ServerResponse
  readonly #statusCode: number
  readonly #statusMessage: string
  readonly #headers: ReturnType<ServerResponse['getHeaders']>
  readonly #writeHead: ServerResponse['writeHead']

  constructor(res: ServerResponse) {
    this.#res = res
    this.#statusCode = res.statusCode
    this.#statusMessage = res.statusMessage
    this.#headers = res.getHeaders()
    this.#writeHead = res.writeHead
    const keptHead: ServerResponse['writeHead'] = () => res
    res.writeHead = keptHead
  }

  /** Makes the response writable again, for another answer. */
  melt(): void {
    this.#res.writeHead = this.#writeHead
  }

  /** Restores status and headers if they were changed meanwhile. */
  restore(): void {
    this.melt()
    const res = this.#res
    res.statusCode = this.#statusCode
    if (res.headersSent) return
    res.statusMessage = this.#statusMessage
    for (const name of res.getHeaderNames()) if (!(name in this.#headers)) res.removeHeader(name)
    for (const [name, value] of Object.entries(this.#headers)) {
      if (value !== undefined && res.getHeader(name) !== value) res.setHeader(name, value)
    }
  }
}

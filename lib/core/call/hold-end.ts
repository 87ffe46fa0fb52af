import type { ServerResponse } from 'node:http'

type EndArguments = Parameters<ServerResponse['end']>

const heldBack = new WeakSet<ServerResponse>()

/** Whether an answer has been given whose end {@link holdEnd} holds back: what goes wrong behind it is not part of it. */
export function isHeldBack(res: ServerResponse): boolean {
  return heldBack.has(res)
}

/** Holds back the end of an answer. */
export interface EndHolder {
  /** Returns what the end has to wait for; undefined if nothing. If it throws or rejects, the error is answered instead. */
  beforeEnd(): Promise<void> | undefined
  /** Receives what is sent. */
  onSend?(chunk: unknown, encoding: unknown): void
}

/**
 * Holds back the end of an answer until everything that must be durable is. Meanwhile the answer counts as complete:
 * whatever the handler or an error handler writes then is not part of it.
 *
 * @param next receives the error that is answered instead: Express's `next`.
 */
export function holdEnd(res: ServerResponse, holder: EndHolder, next: (error: unknown) => void): void {
  const { end } = res
  let isOpen = true

  function heldEnd(this: ServerResponse, ...given: EndArguments): ServerResponse {
    if (!isOpen) return heldBack.has(res) ? res : end.apply(res, given)
    holder.onSend?.(given[0], given[1])
    isOpen = false
    let waiting: Promise<void> | undefined
    try {
      waiting = holder.beforeEnd()
    } catch (error) {
      next(error)
      return res
    }
    if (!waiting) return end.apply(res, given)
    holdBack(res, waiting, end.bind(res, ...given), next)
    return res
  }

  // Not assigned as literals: V8 would allocate those as old objects, which keep the whole call alive until a full
  // collection.
  if (holder.onSend) {
    const { write } = res
    const heldWrite = function (
      this: ServerResponse,
      ...given: Parameters<ServerResponse['write']>
    ): boolean {
      if (isOpen) holder.onSend?.(given[0], given[1])
      return write.apply(this, given)
    }
    res.write = heldWrite as ServerResponse['write']
  }
  res.end = heldEnd as ServerResponse['end']
}

function holdBack(
  res: ServerResponse,
  waiting: Promise<void>,
  end: () => void,
  next: (error: unknown) => void,
): void {
  heldBack.add(res)
  const head = new FrozenHead(res)
  const openWrite = res.write
  const noWrite: ServerResponse['write'] = () => true
  res.write = noWrite
  const release = (): void => {
    heldBack.delete(res)
    res.write = openWrite
  }
  const hand = (): void => {
    release()
    head.restore()
    end()
  }
  const handOther = (error: unknown): void => {
    head.melt()
    release()
    next(error)
  }
  waiting.then(hand, handOther)
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

  /** Lets another answer be given. */
  melt(): void {
    this.#res.writeHead = this.#writeHead
  }

  /** Undoes what was changed meanwhile. */
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

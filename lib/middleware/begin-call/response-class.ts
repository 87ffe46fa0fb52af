import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  OutgoingMessage,
  ServerResponse,
} from 'node:http'

type HeaderValue = number | string | readonly string[]

/**
 * Makes a class of responses that keep their headers as a list until the head is written. Node puts each into an object
 * and reads them all back, which allocates 2 KB for eight headers.
 *
 * Node is given the headers as soon as one is read, replaced or removed, and keeps them from then on.
 */
export function responseClass() {
  return class AppResponse<
    Request extends IncomingMessage = IncomingMessage,
  > extends ServerResponse<Request> {
    /** Names and values in turn; undefined once Node has them. */
    #list: HeaderValue[] | undefined = []

    override setHeader(name: string, value: HeaderValue): this {
      const list = this.#list
      if (list && !this.headersSent && isPlain(name, value) && !has(list, name)) {
        list.push(name, value)
        return this
      }
      this.#handOver()
      return super.setHeader(name, value)
    }

    override writeHead(status: number, reason?: unknown, headers?: unknown): this {
      const list = this.#list
      const given = typeof reason === 'string' ? headers : (headers ?? reason)
      const isNext = list && list.length > 0 && !this.headersSent && status >= 100 && status <= 999
      if (isNext && takes(list, given)) {
        const whole = list as OutgoingHttpHeader[]
        return typeof reason === 'string'
          ? super.writeHead(status, reason, whole)
          : super.writeHead(status, whole)
      }
      this.#handOver()
      return super.writeHead(status, reason as string, headers as OutgoingHttpHeaders)
    }

    override getHeader(name: string) {
      return this.#written()?.getHeader(name) ?? super.getHeader(name)
    }

    override getHeaders() {
      return this.#written()?.getHeaders() ?? super.getHeaders()
    }

    override getHeaderNames() {
      return this.#written()?.getHeaderNames() ?? super.getHeaderNames()
    }

    override hasHeader(name: string) {
      return this.#written()?.hasHeader(name) ?? super.hasHeader(name)
    }

    override removeHeader(name: string): void {
      this.#handOver()
      super.removeHeader(name)
    }

    override appendHeader(name: string, value: string | readonly string[]): this {
      this.#handOver()
      return super.appendHeader(name, value)
    }

    /** Gives Node the headers to keep, unless the head is written already. */
    #handOver(): void {
      const list = this.#list
      if (!list || this.headersSent) return
      this.#list = undefined
      for (let i = 0; i < list.length; i += 2) super.setHeader(list[i] as string, list[i + 1] as HeaderValue)
    }

    /** The headers of a head that was written from the list; undefined where Node knows them. */
    #written(): OutgoingMessage | undefined {
      this.#handOver()
      const list = this.#list
      if (!list || list.length === 0) return undefined
      const written = new OutgoingMessage()
      for (let i = 0; i < list.length; i += 2)
        written.setHeader(list[i] as string, list[i + 1] as HeaderValue)
      return written
    }
  }
}

const NAME = /^[\w!#$%&'*+.^`|~-]+$/
const NO_TEXT = /[^\t\x20-\x7e\x80-\xff]/

/** Whether Node takes a header as it is; what it refuses is left to it. */
function isPlain(name: unknown, value: unknown): value is string | number {
  if (typeof name !== 'string' || !NAME.test(name)) return false
  return typeof value === 'number' || (typeof value === 'string' && !NO_TEXT.test(value))
}

function has(list: readonly HeaderValue[], name: string): boolean {
  for (let i = 0; i < list.length; i += 2) {
    const known = list[i] as string
    if (known.length === name.length && known.toLowerCase() === name.toLowerCase()) return true
  }
  return false
}

/** Adds the headers that `writeHead` was given; false where Node has to judge one, or it replaces another. */
function takes(list: HeaderValue[], given: unknown): boolean {
  if (given === undefined || given === null) return true
  if (Array.isArray(given)) return false
  for (const name of Object.keys(given)) {
    const value = (given as Record<string, HeaderValue>)[name]
    if (!isPlain(name, value) || has(list, name)) return false
    list.push(name, value)
  }
  return true
}

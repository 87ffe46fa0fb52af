import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { http } from '../../core/call/node-http.ts'

/** Names and values in turn, as `writeHead` takes them. */
type HeaderList = (string | OutgoingHttpHeader)[]

const LISTED = Symbol('headers')

/** What Node takes without asking: its own checks allocate. */
const NAME = /^[\w-]+$/
const NOT_IN_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Returns a class of responses that keep their headers in a list until they are sent. Node keeps them in an object that it
 * makes anew as it grows, and reads it back by name, which takes 2 KB for the ten headers of an answer.
 */
export function listingResponse(): typeof ServerResponse {
  return class ListingResponse<
    Request extends IncomingMessage = IncomingMessage,
  > extends http.ServerResponse<Request> {
    declare [LISTED]?: HeaderList

    override setHeader(name: string, value: OutgoingHttpHeader): this {
      // Node says what is wrong.
      if (this.headersSent) return super.setHeader(name, value)
      if (!NAME.test(name)) http.validateHeaderName(name)
      if (typeof value !== 'string' || NOT_IN_A_VALUE.test(value))
        http.validateHeaderValue(name, value as string)
      const list = this[LISTED]
      if (list === undefined) this[LISTED] = [name, value]
      else {
        const at = placeOf(list, name)
        if (at < 0) list.push(name, value)
        else {
          list[at] = name
          list[at + 1] = value
        }
      }
      return this
    }

    override appendHeader(name: string, value: string | readonly string[]): this {
      const known = this.getHeader(name)
      if (known === undefined) return this.setHeader(name, value as string)
      const values = Array.isArray(known) ? known : [known as string]
      return this.setHeader(name, values.concat(value))
    }

    override getHeader(name: string): OutgoingHttpHeader | undefined {
      const list = this[LISTED]
      if (list === undefined) return undefined
      const at = placeOf(list, name)
      return at < 0 ? undefined : (list[at + 1] as OutgoingHttpHeader)
    }

    override hasHeader(name: string): boolean {
      return this.getHeader(name) !== undefined
    }

    override getHeaders(): OutgoingHttpHeaders {
      const headers: OutgoingHttpHeaders = Object.create(null)
      for (const name of this.getHeaderNames()) headers[name] = this.getHeader(name)
      return headers
    }

    override getHeaderNames(): string[] {
      return this.getRawHeaderNames().map((name) => name.toLowerCase())
    }

    getRawHeaderNames(): string[] {
      return (this[LISTED] ?? []).filter((_, i) => i % 2 === 0) as string[]
    }

    override removeHeader(name: string): void {
      super.removeHeader(name)
      const list = this[LISTED]
      if (list === undefined) return
      const at = placeOf(list, name)
      if (at >= 0) list.splice(at, 2)
    }

    override writeHead(status: number, reason?: unknown, headers?: unknown): this {
      const list = this[LISTED]
      if (list === undefined || this.headersSent)
        return super.writeHead(status, reason as string, headers as HeaderList)
      const given = typeof reason === 'string' ? headers : (headers ?? reason)
      if (Array.isArray(given)) {
        for (let i = 0; i < given.length; i += 2) this.removeHeader(given[i])
        for (let i = 0; i < given.length; i += 2) this.appendHeader(given[i], given[i + 1])
      } else if (given) {
        for (const [name, value] of Object.entries(given)) this.setHeader(name, value)
      }
      return typeof reason === 'string'
        ? super.writeHead(status, reason, list)
        : super.writeHead(status, list)
    }
  }
}

/** Where the headers of limits that are as long as each other differ. */
const DIFFERS_AT = 12

/** Returns the place of a name in a list; -1 if it is not there. */
function placeOf(list: HeaderList, name: string): number {
  for (let i = 0; i < list.length; i += 2) {
    const each = list[i] as string
    if (each === name) return i
    // Texts in lower case are made only where the names are surely alike.
    if (each.length !== name.length || (each.charCodeAt(0) ^ name.charCodeAt(0)) % 32 !== 0) continue
    if ((each.charCodeAt(DIFFERS_AT) ^ name.charCodeAt(DIFFERS_AT)) % 32 !== 0) continue
    if (each.toLowerCase() === name.toLowerCase()) return i
  }
  return -1
}

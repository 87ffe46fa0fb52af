import { Agent, type Dispatcher } from 'undici'
import type { Line } from '../../../core/catalog/index.ts'
import type { Wire } from '../../../routing/lines/upstream-pool.ts'
import { isPrivateHost, lookupPublic } from './public-address.ts'

/** What to fetch, and for whom. */
export interface DownloadTarget {
  readonly url: string
  /** With our credentials: they go to the line's own origin and nowhere else. */
  readonly headers: Readonly<Record<string, string>>
  /** The caller's own, such as a range. */
  readonly asked: Readonly<Record<string, string>>
  /** Whose video it is. */
  readonly line: Line
}

/** A request for an address, and what it goes over. */
export interface DownloadRequest {
  /** Undefined where the address must not be fetched: the wire does not take the request then. */
  readonly at: URL | undefined
  readonly request: Dispatcher.DispatchOptions
  readonly wire: Wire
}

/** For the log: its text tells no more than why an address must not be fetched. */
class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress'
}

/**
 * Prepares to fetch what a line points to. An upstream that is not ours to trust names the address, so it may be on the
 * line's own origin, or, over https, at a public address; redirects are held to the same.
 */
export class Downloads {
  // The clocks of the exchange rule; undici's own would end a long download behind their back.
  readonly #common: Agent.Options = { allowH2: false, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 }
  readonly #own = new Agent(this.#common)
  readonly #foreign = new Agent({ ...this.#common, connect: { lookup: lookupPublic } })

  /** @param from where a redirect to the address came from. */
  requestFor(order: DownloadTarget, from?: URL): DownloadRequest {
    try {
      return this.#requestFor(order, parse(order.url, from))
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error))
      const refuse: Wire['dispatch'] = (_request, handler) => handler.onResponseError(null, reason)
      const request = { method: 'GET', path: '/' }
      return { at: undefined, request, wire: { dispatch: refuse, dispatchFresh: refuse } }
    }
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    await Promise.all([this.#own.destroy(), this.#foreign.destroy()])
  }

  #requestFor({ headers, asked, line }: DownloadTarget, at: URL): DownloadRequest {
    const isOwn = at.origin === line.origin
    if (!isOwn) refuseUnlessPublic(at)
    const agent = isOwn ? this.#own : this.#foreign
    const { origin } = at
    const dispatch: Wire['dispatch'] = (request, handler) =>
      void agent.dispatch({ ...request, origin }, handler)
    return {
      at,
      request: {
        method: 'GET',
        path: at.pathname + at.search,
        headers: isOwn ? { ...headers, ...asked } : { 'accept-encoding': 'identity', ...asked },
      },
      wire: { dispatch, dispatchFresh: dispatch },
    }
  }
}

function parse(url: string, base?: URL): URL {
  const parsed = URL.parse(url, base?.href)
  if (!parsed || !/^https?:$/.test(parsed.protocol)) throw new RefusedAddress('not an http address')
  if (parsed.username !== '' || parsed.password !== '') throw new RefusedAddress('it holds credentials')
  return parsed
}

function refuseUnlessPublic({ protocol, hostname }: URL): void {
  if (protocol !== 'https:') throw new RefusedAddress("not https, and not the line's own origin")
  if (isPrivateHost(hostname)) throw new RefusedAddress("not public, and not the line's own origin")
}

import type { Agent, Dispatcher } from 'undici'
import type { Line } from '../../../core/catalog/index.ts'
import { isPrivateHost, lookupPublic } from '../../../core/public-address/index.ts'
import type { Transport } from '../../../routing/lines/upstream-pool.ts'

/** A file to fetch and the line that made it. */
export interface DownloadTarget {
  readonly url: string
  /** Headers with the line's credentials. They are sent to the line's own origin only. */
  readonly headers: Readonly<Record<string, string>>
  /** Headers of the caller, such as a range. */
  readonly callerHeaders: Readonly<Record<string, string>>
  /** The line that made the video. */
  readonly line: Line
}

/** A request for a file and the connection that it is sent over. */
export interface DownloadRequest {
  /** Undefined if the address must not be fetched; the transport then fails the request. */
  readonly at: URL | undefined
  readonly request: Dispatcher.DispatchOptions
  readonly transport: Transport
}

/** Opens the connections to hosts that are no lines, which must be public. */
async function openAgent(): Promise<Agent> {
  const { Agent } = await import('undici')
  // The exchange has its own clocks; undici's would end a long download.
  const clocks = { headersTimeout: 0, bodyTimeout: 0 }
  return new Agent({ allowH2: false, pipelining: 1, ...clocks, connect: { lookup: lookupPublic } })
}

/** An address that must not be fetched. The message says why and does not repeat the address. */
class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress'
}

/**
 * Prepares requests for the addresses that lines name for their files. An upstream is not trusted: an address must be
 * on the line's own origin, or a public one over https. The same holds for redirects.
 */
export class Downloads {
  readonly #transportTo: (line: Line) => Transport
  #opened: Promise<Agent> | undefined

  /** @param transportTo returns what sends requests to a line. */
  constructor(transportTo: (line: Line) => Transport) {
    this.#transportTo = transportTo
  }

  /** @param from the address that redirected to this one. */
  requestFor(target: DownloadTarget, from?: URL): DownloadRequest {
    try {
      return this.#requestFor(target, parse(target.url, from))
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error))
      const refuse: Transport['dispatch'] = (_request, handler) => handler.onResponseError(null, reason)
      const request = { method: 'GET', path: '/' }
      return { at: undefined, request, transport: { dispatch: refuse, dispatchFresh: refuse } }
    }
  }

  /** Ends all running downloads. */
  async close(): Promise<void> {
    await (await this.#opened)?.destroy()
  }

  #requestFor({ headers, callerHeaders, line }: DownloadTarget, at: URL): DownloadRequest {
    const isOwn = at.origin === line.origin
    if (!isOwn) refuseUnlessPublic(at)
    return {
      at,
      request: {
        method: 'GET',
        path: at.pathname + at.search,
        headers: { 'accept-encoding': 'identity', ...(isOwn && headers), ...callerHeaders },
      },
      transport: isOwn ? this.#transportTo(line) : this.#foreign(at.origin),
    }
  }

  #foreign(origin: string): Transport {
    this.#opened ??= openAgent()
    const opened = this.#opened
    const dispatch: Transport['dispatch'] = (request, handler) => {
      opened
        .then((agent) => agent.dispatch({ ...request, origin }, handler))
        .catch((error: Error) => handler.onResponseError(null, error))
    }
    return { dispatch, dispatchFresh: dispatch }
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

import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { Agent, type Dispatcher, request } from 'undici'
import type { Line } from '../../../core/catalog/index.ts'
import { isPrivateHost, lookupPublic, PrivateAddress } from './public-address.ts'

/** Something that an upstream is sending. */
export interface Download {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable & { dump(): Promise<void> }
}

/** What to fetch, and for whom. */
export interface DownloadOrder {
  readonly url: string
  /** With our credentials: they go to the line's own origin and nowhere else. */
  readonly headers: Readonly<Record<string, string>>
  /** The caller's own, such as a range. */
  readonly asked: Readonly<Record<string, string>>
  /** Whose video it is. */
  readonly line: Line
}

/** An address that must not be fetched: for the log, its text tells no more than why. */
export class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress'
}

const MOST_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Fetches what a line points to. An upstream that is not ours to trust names the address, so it may be on the line's own
 * origin, or, over https, at a public address; redirects are held to the same.
 */
export class Downloads {
  readonly #common: Agent.Options = { allowH2: false, pipelining: 1 }
  readonly #own = new Agent(this.#common)
  readonly #foreign = new Agent({ ...this.#common, connect: { lookup: lookupPublic } })

  /**
   * Begins to fetch.
   *
   * @throws {RefusedAddress} where an address, or one that it redirects to, may not be fetched.
   * @throws undici's errors where the connection fails, or the signal ends.
   */
  async open({ url, headers, asked, line }: DownloadOrder, signal: AbortSignal): Promise<Download> {
    let at = parse(url)
    for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
      const isOwn = at.origin === line.origin
      if (!isOwn) refuseUnlessPublic(at)
      const sent = isOwn ? { ...headers, ...asked } : { 'accept-encoding': 'identity', ...asked }
      const answer = await this.#ask(at, isOwn, sent, line, signal)
      const { location } = answer.headers
      if (!REDIRECTS.has(answer.statusCode) || typeof location !== 'string')
        return { status: answer.statusCode, headers: answer.headers, body: answer.body }
      await answer.body.dump()
      at = parse(location, at)
    }
    throw new RefusedAddress('too many redirects')
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    await Promise.all([this.#own.destroy(), this.#foreign.destroy()])
  }

  async #ask(
    { href }: URL,
    isOwn: boolean,
    headers: Record<string, string>,
    { timeouts }: Line,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { firstByteMs: headersTimeout, idleMs: bodyTimeout } = timeouts
    try {
      return await request(href, {
        dispatcher: isOwn ? this.#own : this.#foreign,
        headers,
        headersTimeout,
        bodyTimeout,
        signal,
      })
    } catch (error) {
      if (error instanceof PrivateAddress) throw new RefusedAddress(error.message)
      throw error
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

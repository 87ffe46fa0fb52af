const ATTRIBUTES = ['any', 'primary', 'read-write']
const URL_PARTS = /^(?<scheme>postgres(?:ql)?:\/\/)(?<login>[^@/?]*@)?(?<hosts>[^/?]*)(?<rest>.*)$/s

/**
 * The servers that a URL names, as libpq reads it: `postgres://user:password@a:5432,b:5432/name?target_session_attrs=read-write`.
 * New connections go to the last one that served, and to the next when that fails.
 */
export class PostgresHosts {
  /** One for each server. */
  readonly urls: readonly string[]
  /** Whether a connection must be to a server that takes writes. */
  readonly mustWrite: boolean
  #current = 0

  /** @throws TypeError if the URL has an unknown value of `target_session_attrs`. */
  constructor(url: string) {
    const { scheme, login = '', hosts = '', rest = '' } = URL_PARTS.exec(url)?.groups ?? {}
    const names = hosts.split(',')
    const attribute = /[?&]target_session_attrs=([^&]*)/.exec(rest)?.[1]
    if (attribute !== undefined && !ATTRIBUTES.includes(attribute))
      throw new TypeError(`target_session_attrs of a postgres:// URL must be one of ${ATTRIBUTES.join(', ')}`)
    // Of several servers, the others are mostly standbys.
    this.mustWrite = attribute === undefined ? names.length > 1 : attribute !== 'any'
    const others = rest.replace(/([?&])target_session_attrs=[^&]*(&|$)/, (_, before, after) =>
      after ? before : '',
    )
    this.urls = scheme ? names.map((name) => scheme + login + name + others) : [url]
  }

  get count(): number {
    return this.urls.length
  }

  /** The URL of the server that the next connection is for. */
  get current(): string {
    return this.urls[this.#current] as string
  }

  /** Notes that a server failed: the next connection is for the one behind it, unless another has taken its place already. */
  leave(url: string): void {
    if (url === this.current) this.#current = (this.#current + 1) % this.urls.length
  }
}

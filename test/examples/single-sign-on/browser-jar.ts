/** A browser without pages: it keeps cookies by host, and goes where it is sent, one step at a time. */
export class BrowserJar {
  readonly cookies = new Map<string, string>()
  /** The cookies that were set last, as the server wrote them. */
  readonly set: string[] = []

  async get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
    const { host } = new URL(url)
    const cookie = [...this.cookies]
      .filter(([name]) => name.startsWith(`${host} `))
      .map(([name, value]) => `${name.slice(host.length + 1)}=${value}`)
      .join('; ')
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { ...(cookie !== '' && { cookie }), ...headers },
    })
    for (const line of response.headers.getSetCookie()) {
      this.set.push(line)
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /expires=Thu, 01 Jan 1970/i.test(line)) this.cookies.delete(`${host} ${name}`)
      else this.cookies.set(`${host} ${name}`, value)
    }
    return response
  }

  /** Follows redirects up to the first address that `until` accepts, which is not asked, or to the end. */
  async follow(url: string, until: (next: string) => boolean = () => false): Promise<string> {
    let at = url
    for (let steps = 0; steps < 12; steps++) {
      if (until(at)) return at
      const response = await this.get(at)
      await response.arrayBuffer()
      const next = response.headers.get('location')
      if (next === null) return at
      at = new URL(next, at).href
    }
    throw new Error(`redirected without end: ${at}`)
  }
}

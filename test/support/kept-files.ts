import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { MemoryResourceStore, UpstreamResources } from '../../lib/middleware/references/index.ts'
import { type ForwardGateway, forwardGateway, OTHER_KEY } from './forward-gateway.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

/** A page of a list of files. */
export interface Page {
  readonly data: readonly { readonly id: string; readonly line: string }[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
  readonly next_page: string | null
}

type Tenant = 'acme' | 'globex'

/** A line that keeps files for all, and lists those of everybody. */
class FileLine {
  readonly files = new Map<string, { id: string; [member: string]: unknown }>()
  /** The largest number of requests at a time. */
  mostAtOnce = 0
  /** Answers in place of files. */
  fault: { readonly status: number; readonly headers?: Record<string, string> } | undefined
  upstream!: ScriptedUpstream
  #running = 0
  readonly #name: string
  readonly #made: { count: number }

  /** @param made counts the files of all lines. */
  constructor(name: string, made: { count: number }) {
    this.#name = name
    this.#made = made
  }

  async start(t: TestContext): Promise<this> {
    this.upstream = await startUpstream(async (res, { path: target }) => {
      const path = target.replace(/\?.*$/, '')
      this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#running)
      await new Promise((resolve) => setTimeout(resolve, 2))
      this.#running--
      if (this.fault) {
        res.writeHead(this.fault.status, this.fault.headers).end()
        return
      }
      const all = [...this.files.values()]
      if (path === '/v1/files') return answerJson(res, 200, { object: 'list', data: all, has_more: false })
      const file = this.files.get(decodeURIComponent(path.slice('/v1/files/'.length)))
      answerJson(res, file ? 200 : 404, file ?? { error: { message: 'No such File object' } })
    })
    t.after(() => this.upstream.close())
    return this
  }

  make(body: { id?: string }) {
    const { id = `file-${this.#name}/${String(++this.#made.count).padStart(4, '0')}` } = body
    const file = { object: 'file', line: this.#name, ...body, id }
    this.files.set(id, file)
    return file
  }
}

/** A gateway that passes files on to two lines, whose files are made apart. */
export class KeptFiles {
  readonly one: FileLine
  readonly two: FileLine
  gateway!: ForwardGateway
  readonly store = new MemoryResourceStore()

  constructor() {
    const made = { count: 0 }
    this.one = new FileLine('one', made)
    this.two = new FileLine('two', made)
  }

  async start(t: TestContext, price?: { perRequest: string }): Promise<this> {
    const [one, two] = [await this.one.start(t), await this.two.start(t)]
    const at = (path: string, lines: string[]) => ({ path, lines, ...(price && { price }) })
    const rules = [at('/v1/files', ['line-0', 'line-1']), at('/v1/files/*rest', ['line-0', 'line-1'])]
    const resources = new UpstreamResources({ store: this.store })
    t.after(() => resources.close())
    const lines = [one.upstream.url, two.upstream.url]
    this.gateway = await forwardGateway(t, { lines, rules, resources })
    return this
  }

  as(tenant: Tenant, method: string, path: string, body?: object): Promise<Response> {
    return this.gateway.ask(path, {
      method,
      headers: {
        ...(tenant === 'globex' && { authorization: `Bearer ${OTHER_KEY}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
  }

  /** Makes a file at a line and returns its id. */
  async make(tenant: Tenant, line: 0 | 1, members: object = {}): Promise<string> {
    // The rule prefers its first line; the records say where things are.
    const target = line === 0 ? this.one : this.two
    const made = target.make(members)
    const createdAt = ++this.#clock
    const record = {
      kind: 'file',
      id: made.id,
      key: null,
      model: null,
      tokens: 0,
      createdAt,
      expiresAt: null,
    }
    await this.store.remember([{ ...record, account: tenant, line: `line-${line}` }])
    return made.id
  }
  #clock = 0

  async list(tenant: Tenant, query = ''): Promise<Page> {
    const answer = await this.as(tenant, 'GET', `/v1/files${query}`)
    assert.equal(answer.status, 200, query)
    assert.equal(answer.headers.get('cache-control'), 'private, no-store')
    return (await answer.json()) as Page
  }

  reset(): void {
    for (const line of [this.one, this.two]) line.upstream.requests.length = 0
  }

  get asked(): string[] {
    return [this.one, this.two].flatMap(({ upstream }) => upstream.requests.map(({ path }) => path))
  }
}

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { RequestHandler } from 'express'
import type { CallLogEntry } from '../../lib/middleware/call-log/index.ts'
import type { RouteOptions } from '../../lib/middleware/route/index.ts'
import { answer, bodyOf, type Exchange, type Mode } from '../support/exchange.ts'
import { KEY } from '../support/gateway.ts'
import { type LimitedGateway, type Sending, startLimitedGateway } from '../support/limited-gateway.ts'
import { type ScriptedUpstream, startUpstream, type UpstreamScript } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'
import type { ChainStores } from './backends.ts'

/** A second API key of the account, without limits of its own: its headers report the account's counts. */
export const SIBLING_KEY = 'sk-test-sibling'

/** Of the first key, and of the account. The account has one slot. */
export const LIMITS = {
  key: { rpm: 50, tpm: 5000 },
  account: { rpm: 100, tpm: 10_000, concurrency: 1 },
} as const

export interface ChainSetting {
  readonly mode: Mode
  /** The script of the line `main` of the model "chat". The model "spare" has a line of its own that always answers. */
  readonly script?: UpstreamScript
  /** Members of the line `main`. */
  readonly line?: Record<string, unknown>
  /** Further lines of the model "chat", on the same upstream. */
  readonly moreLines?: readonly Record<string, unknown>[]
  readonly limits?: { key?: object; account?: object }
  readonly further?: RequestHandler
  readonly route?: Partial<RouteOptions>
}

/** A gateway under one test: its calls are booked, so that what was taken can be compared with what is counted. */
export class ChainRun {
  readonly mode: Mode
  readonly gateway: LimitedGateway
  readonly upstream: ScriptedUpstream
  /** The Idempotency-Key of this run. */
  readonly key = randomUUID()
  /** The requests and tokens of admitted calls, by key and account. */
  readonly #booked = { own: { requests: 0, tokens: 0 }, account: { requests: 0, tokens: 0 } }

  constructor(mode: Mode, gateway: LimitedGateway, upstream: ScriptedUpstream) {
    this.mode = mode
    this.gateway = gateway
    this.upstream = upstream
  }

  static async start(t: TestContext, stores: ChainStores, setting: ChainSetting): Promise<ChainRun> {
    const { mode } = setting
    const upstream = await startUpstream(setting.script ?? ((res) => answer(res, mode)))
    const spare = await startUpstream((res, { json }) =>
      answer(res, { ...mode, stream: json.stream === true }),
    )
    t.after(() => Promise.all([upstream.close(), spare.close()]))
    const lineOf = (id: string, url: string, model: string, extra: object = {}) => ({
      id,
      provider: `provider-${id}`,
      protocol: mode.protocol,
      baseUrl: `${url}/v1`,
      apiKey: 'upstream-key',
      models: { [model]: 'upstream-chat' },
      ...extra,
    })
    const gateway = await startLimitedGateway({
      ...stores,
      config: {
        accounts: [{ id: 'acme', limits: { ...LIMITS.account, ...setting.limits?.account } }],
        keys: [
          { id: 'key_acme', account: 'acme', secret: KEY, limits: { ...LIMITS.key, ...setting.limits?.key } },
          { id: 'key_sibling', account: 'acme', secret: SIBLING_KEY },
        ],
        models: [
          { id: 'chat', kind: 'chat' },
          { id: 'spare', kind: 'chat' },
        ],
        lines: [
          lineOf('main', upstream.url, 'chat', setting.line),
          ...(setting.moreLines ?? []).map((line, i) => lineOf(`more-${i}`, upstream.url, 'chat', line)),
          lineOf('spare', spare.url, 'spare'),
        ],
      },
      ...(setting.further && { further: setting.further }),
      ...(setting.route && { route: setting.route }),
    })
    t.after(() => gateway.close())
    return new ChainRun(mode, gateway, upstream)
  }

  /** The body of a chat in this run's mode. */
  body(extra: Record<string, unknown> = {}): Record<string, unknown> {
    return { ...bodyOf(this.mode), ...extra }
  }

  exchange(body: unknown, sending?: Sending): Promise<Exchange> {
    return this.gateway.exchange(this.mode, body, sending)
  }

  /** Notes that a call was admitted, so that its request and tokens have to be counted from now on. */
  async book(requestId: string, secret: string = KEY): Promise<CallLogEntry> {
    const entry = await this.gateway.entry(requestId)
    const tokens = entry.request?.estimated_input_tokens ?? 0
    assert.ok(tokens > 0, 'an admitted call has tokens')
    for (const count of secret === KEY ? [this.#booked.own, this.#booked.account] : [this.#booked.account]) {
      count.requests++
      count.tokens += tokens
    }
    return entry
  }

  /** A call that nothing refuses: it gets the account's only slot at once. */
  async passes(sending: Sending = {}, stream = this.mode.stream): Promise<Exchange> {
    const got = await this.exchange(this.body({ model: 'spare', stream }), sending)
    assert.equal(got.status, 200, got.text)
    await this.book(got.requestId, sending.secret)
    return got
  }

  /** Asserts that the counts of both levels are what was booked; its own two calls are booked, too. */
  async assertCounted(): Promise<void> {
    const own = await this.passes()
    this.#assertLeft(own, LIMITS.key, this.#booked.own)
    const sibling = await this.passes({ secret: SIBLING_KEY })
    this.#assertLeft(sibling, LIMITS.account, this.#booked.account)
  }

  #assertLeft(
    { headers }: Exchange,
    { rpm, tpm }: { rpm: number; tpm: number },
    { requests, tokens }: { requests: number; tokens: number },
  ): void {
    const left = remaining(this.mode, headers)
    assert.deepEqual(left, { requests: rpm - requests, tokens: tpm - tokens })
  }

  /** The key runs other content: no call has it. */
  async assertKeyFree(): Promise<void> {
    await this.passes({ key: this.key })
  }

  /** The same content is a replay of that call, other content is refused; neither takes anything or goes upstream. */
  async assertKeyUsed(body: unknown, originalId: string): Promise<void> {
    const before = this.upstream.requests.length
    const again = await this.exchange(body, { key: this.key })
    this.assertCode(again, 'idempotency_key_replayed', 409)
    assert.equal(again.headers.get('x-original-request-id'), originalId)
    const other = await this.exchange(this.body({ model: 'spare' }), { key: this.key })
    this.assertCode(other, 'idempotency_key_reused', 400)
    for (const { headers } of [again, other]) {
      assert.deepEqual(remaining(this.mode, headers), { requests: null, tokens: null })
    }
    assert.equal(this.upstream.requests.length, before)
    assert.equal((await this.gateway.entry(again.requestId)).original_request_id, originalId)
  }

  /** The protocols without a code in the envelope have it in the log. */
  assertCode(got: Exchange, code: string, status: number): void {
    assert.equal(got.status, status, got.text)
    if (this.mode.protocol === 'openai') assert.equal(got.errorCode, code)
  }

  /** Waits until every call has ended: of a connection that broke, the caller may know before the gateway does. */
  settled(): Promise<void> {
    return until(() => this.gateway.openCalls.size === 0, 'the end of all calls')
  }
}

/** The limit headers of a protocol: what is left; null without them. */
export function remaining({ protocol }: Mode, headers: Headers) {
  const read = (kind: string): number | null => {
    const name =
      protocol === 'openai' ? `x-ratelimit-remaining-${kind}` : `anthropic-ratelimit-${kind}-remaining`
    const value = headers.get(name)
    return value === null ? null : Number(value)
  }
  return { requests: read('requests'), tokens: read('tokens') }
}

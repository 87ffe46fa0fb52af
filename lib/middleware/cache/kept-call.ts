import type { ServerResponse } from 'node:http'
import type { OpenCall } from '../../core/call/index.ts'
import { RecordedAnswer } from '../../core/repetition/index.ts'
import { CHOOSING_HEADERS, directivesIn } from './cacheable.ts'
import type { CachedAnswers } from './cached-answers.ts'

/** The headers that limits set for one request. */
const OF_ONE_REQUEST = /ratelimit|^retry-after/

/** The headers that answers may vary by: encodings are chosen behind this middleware. */
const VARIES_BY: ReadonlySet<string> = new Set(['', 'accept-encoding', ...CHOOSING_HEADERS])

export interface KeptCallOptions {
  readonly answers: CachedAnswers
  readonly key: string
  readonly ttl: number
  /** The largest answer to keep, in bytes. */
  readonly answerLimitBytes: number
}

/** A call whose answer is kept, once it is whole. The end of the answer does not wait for that. */
export class KeptCall {
  readonly #call: OpenCall
  readonly #res: ServerResponse
  readonly #options: KeptCallOptions
  /** The model that was asked for. */
  readonly #model: string | undefined
  /** Earlier middlewares, such as that of cors, vary the answer to a repetition by these again. */
  readonly #variesAnyway: readonly string[]
  #recorded: RecordedAnswer | undefined

  constructor(call: OpenCall, res: ServerResponse, options: KeptCallOptions) {
    this.#call = call
    this.#res = res
    this.#options = options
    this.#model = call.request?.model.id
    this.#variesAnyway = directivesIn(String(res.getHeader('vary') ?? ''))
    this.#recorded = new RecordedAnswer(res, options.answerLimitBytes, OF_ONE_REQUEST)
  }

  onSend(chunk: unknown, encoding: unknown): void {
    this.#recorded?.add(chunk, encoding)
  }

  beforeEnd(): undefined {
    const { answers, key, ttl } = this.#options
    const recorded = this.#recorded
    // The call may stay in memory for longer than its answer has to.
    this.#recorded = undefined
    const answer = recorded && this.#isWhole && this.#mayBeKept(recorded) ? recorded.encode() : undefined
    if (answer !== undefined) answers.keep(key, { id: this.#call.id, at: Date.now(), answer }, ttl)
    return undefined
  }

  /** Whether the answer is whole, and of the model that was asked for. */
  get #isWhole(): boolean {
    const { outcome, left, request, routing } = this.#call
    // A call that fails behind the first bytes has its outcome before the end of its answer.
    if (this.#res.statusCode !== 200 || outcome !== null || left) return false
    if (request?.model.id !== this.#model) return false
    const decided = routing?.attempts.at(-1)
    return !decided || (decided.outcome === 'completed' && decided.finishReason === undefined)
  }

  /** Whether the headers of the answer let it be kept. */
  #mayBeKept(answer: RecordedAnswer): boolean {
    const directives = directivesIn(answer.header('cache-control'))
    if (directives.includes('no-store') || directives.includes('private')) return false
    // Another caller may not read this encoding.
    if (answer.header('content-encoding') !== '') return false
    return directivesIn(answer.header('vary')).every(
      (name) => VARIES_BY.has(name) || this.#variesAnyway.includes(name),
    )
  }
}

import type { AttemptRecord, LineRequest } from '../../../core/call/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/index.ts'
import { type ExchangeEnd, type Failure, malformed } from '../../../routing/attempt/failure.ts'
import { LineSend } from '../../../routing/attempt/line-send.ts'
import type { AttemptPolicy } from '../../../routing/attempt-policy.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'

/** What a line says of a thing that it has no more, or never had below this path. */
const GONE: ReadonlySet<number> = new Set([404, 405, 410])

/** Asks one line for several things at once. The first failure is that of all. */
export class LookUps implements AttemptPolicy {
  readonly request = null
  record: AttemptRecord | undefined
  /** What the line said, in the order of the requests; undefined for a thing that it does not have. */
  found: readonly (JsonObject | undefined)[] = []
  readonly #requests: readonly LineRequest[]
  readonly #signal: AbortSignal

  constructor(requests: readonly LineRequest[], signal: AbortSignal) {
    this.#requests = requests
    this.#signal = signal
  }

  async attempt(candidate: Candidate): Promise<ExchangeEnd> {
    const asked = await Promise.all(this.#requests.map((request) => this.#ask(candidate, request)))
    const failed = asked.find(({ failure }) => failure) ?? asked[0]
    this.record = failed?.sending.record(failed.failure?.code ?? 'completed')
    this.found = asked.map(({ thing }) => thing)
    const failure = failed?.failure
    if (!failure) return { kind: 'served' }
    if (this.#signal.aborted) return { kind: 'abandoned', failure }
    return { kind: 'failed', failure, committed: false, elsewhere: false, lineFault: failure.fault !== null }
  }

  finish(): undefined {}

  async #ask(candidate: Candidate, request: LineRequest) {
    const sending = new LineSend(candidate, request, this.#signal)
    const result = await sending.run()
    if (result.kind === 'refused' && GONE.has(result.status)) return { sending }
    if (result.kind !== 'answered') return { sending, failure: sending.failure ?? malformed('no answer') }
    const thing = parseJson(result.body.toString())
    if (isJsonObject(thing)) return { sending, thing }
    return { sending, failure: malformed('the answer is no JSON object') as Failure }
  }
}

import type { Call, GuardTrace, OpenCall } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { timeLimit } from '../../core/timing/index.ts'
import type { Text } from './texts.ts'

/** The decision of a guard about a text: it may pass, must not, or passes as another text. */
export type Decision = 'allow' | { readonly refuse: string } | { readonly replace: string }

/** Checks a text of a call. */
export type GuardFunction = (text: string, call: Call) => Decision | PromiseLike<Decision>

export interface CheckerOptions {
  readonly name: string
  readonly timeoutMs: number
  readonly onError: 'refuse' | 'allow'
}

const RANK = { allowed: 0, replaced: 1, failed: 2, refused: 3 } as const

/** Several texts of a body are checked as one, each on lines of its own. */
const SEPARATOR = '\n'
/** How many answers of a function are remembered: events at the end of a stream repeat their text. */
const MAX_KNOWN = 8

/** Runs the function of a guard on the texts of a call, in time, and notes what it decided. */
export class Checker {
  readonly #check: GuardFunction
  readonly #call: OpenCall
  readonly #options: CheckerOptions
  readonly #on: GuardTrace['on']
  #trace: GuardTrace | undefined
  readonly #known = new Map<string, Decision>()

  constructor(check: GuardFunction, call: OpenCall, on: GuardTrace['on'], options: CheckerOptions) {
    this.#check = check
    this.#call = call
    this.#on = on
    this.#options = options
  }

  /**
   * Checks the texts of a body, an answer or an event.
   *
   * @returns whether some were replaced.
   * @throws {GatewayError} `content_filtered`.
   */
  async checkAll(texts: readonly Text[]): Promise<boolean> {
    if (texts.length === 0) return false
    const replaced = await this.check(texts.map(({ text }) => text).join(SEPARATOR))
    if (replaced === undefined) return false
    const [only, ...others] = texts
    if (only && others.length === 0) {
      only.set(replaced)
      return true
    }
    let hasChanged = false
    for (const each of texts) {
      const text = await this.check(each.text)
      if (text === undefined) continue
      each.set(text)
      hasChanged = true
    }
    // The match spans several texts and cannot be replaced.
    if (!hasChanged) throw this.unreplaceable()
    return true
  }

  /**
   * Checks one text.
   *
   * @returns what takes its place; undefined if it stays.
   * @throws {GatewayError} `content_filtered`, or `client_closed_request` if the caller has left meanwhile.
   */
  async check(text: string): Promise<string | undefined> {
    const decision = this.#known.get(text) ?? (await this.#decide(text))
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(text, decision)
    if (decision === 'allow') return undefined
    if ('refuse' in decision) throw this.#refusal(decision.refuse)
    if (decision.replace === text) return undefined
    this.#note('replaced')
    return decision.replace
  }

  async #decide(text: string): Promise<Decision> {
    const begun = performance.now()
    const trace = this.#note('allowed')
    trace.checks++
    try {
      const decision: unknown = await inTime(this.#call, this.#options.timeoutMs, () =>
        this.#check(text, this.#call),
      )
      return checkedDecision(decision)
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'client_closed_request') throw error
      return this.#failed(error)
    } finally {
      trace.durationMs += performance.now() - begun
    }
  }

  #failed(error: unknown): Decision {
    const { name, onError } = this.#options
    const { logger, id: requestId } = this.#call
    logger.error({ err: error, requestId, guard: name, onError }, 'a guard failed')
    this.#note('failed')
    if (onError === 'allow') return 'allow'
    throw this.#call.refuse('content_filtered', {
      message: 'The content could not be checked. Send it again later.',
    })
  }

  /** Returns the error for a match that nothing can take the place of, such as one whose beginning was sent. */
  unreplaceable(): GatewayError {
    return this.#refusal('it cannot be replaced')
  }

  #refusal(reason: string): GatewayError {
    this.#note('refused')
    return this.#call.refuse('content_filtered', {
      message: `The content is not allowed: ${reason}.`,
    })
  }

  #note(decision: GuardTrace['decision']): GuardTrace {
    this.#trace ??= this.#newTrace()
    if (RANK[decision] > RANK[this.#trace.decision]) this.#trace.decision = decision
    return this.#trace
  }

  #newTrace(): GuardTrace {
    const trace: GuardTrace = {
      guard: this.#options.name,
      on: this.#on,
      decision: 'allowed',
      checks: 0,
      durationMs: 0,
    }
    this.#call.guards.push(trace)
    return trace
  }
}

/** @throws what the function throws, if it takes too long, or if the caller leaves. */
function inTime<T>(call: OpenCall, ms: number, run: () => T | PromiseLike<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const cancel = timeLimit(ms, () => reject(new Error(`it has not decided after ${ms} ms`)), true)
  const onLeave = (): void => reject(call.refuse('client_closed_request'))
  call.onLeave(onLeave)
  const done = (): void => {
    cancel()
    call.offLeave(onLeave)
  }
  promise.then(done, done)
  try {
    Promise.resolve(run()).then(resolve, reject)
  } catch (error) {
    reject(error)
  }
  return promise
}

function checkedDecision(decision: unknown): Decision {
  if (decision === 'allow') return decision
  if (typeof decision === 'object' && decision !== null) {
    const { refuse, replace } = decision as { refuse?: unknown; replace?: unknown }
    if (typeof refuse === 'string') return { refuse }
    if (typeof replace === 'string') return { replace }
  }
  throw new TypeError("a guard must return 'allow', { refuse: 'reason' } or { replace: text }")
}

import { type CallRequest, type OpenCall, type RoutingTrace, requestFor } from '../core/call/index.ts'
import type { GatewayError } from '../core/errors/index.ts'
import type { AttemptEnd } from './attempt/failure.ts'
import { finalErrorOf } from './candidates/final-error.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import {
  type DecidingAttempt,
  isRefusal,
  type ModelChoice,
  type ModelRefusal,
  SharedDeadline,
  tryModel,
} from './try-candidates.ts'

/**
 * Tries the lines of a call's model, then those of its fallback models, until one decides the call. `call.model` and
 * `call.request` are those of the model whose lines are tried; if none serves the call, they are again those of the first.
 *
 * @param request the call's request.
 * @param choiceFor is called with the request as it is for each model, when its turn comes.
 * @returns the refusal if no line serves the call; undefined if the caller left between two attempts.
 * @throws an error of an attempt.
 */
export function tryModels<End extends AttemptEnd>(
  call: OpenCall,
  request: CallRequest,
  settings: RoutingSettings,
  choiceFor: (request: CallRequest) => ModelChoice<End>,
): Promise<DecidingAttempt<End> | ModelRefusal | undefined> {
  return request.fallbacks.length === 0
    ? tryModel(call, choiceFor(request), settings, new SharedDeadline())
    : tryEach(call, request, settings, choiceFor)
}

async function tryEach<End extends AttemptEnd>(
  call: OpenCall,
  request: CallRequest,
  settings: RoutingSettings,
  choiceFor: (request: CallRequest) => ModelChoice<End>,
): Promise<DecidingAttempt<End> | ModelRefusal | undefined> {
  const deadline = new SharedDeadline()
  const refusals: ModelRefusal[] = []
  for (const model of [request.model, ...request.fallbacks]) {
    const own = model === request.model ? request : requestFor(request, model)
    if (own !== request) ask(call, own)
    const choice = choiceFor(own)
    const trace = call.routing as RoutingTrace
    const before = { eliminated: trace.eliminated.length, attempts: trace.attempts.length }
    let decided: DecidingAttempt<End> | ModelRefusal | undefined
    try {
      decided = await tryModel(call, choice, settings, deadline)
    } finally {
      nameModel(trace, before, model.id)
    }
    if (!isRefusal(decided)) return decided
    refusals.push(decided)
    if (!decided.elsewhere) break
  }
  if (call.request !== request) ask(call, request)
  return { ...(refusals[0] as ModelRefusal), error: refusalOf(refusals, request) }
}

function ask(call: OpenCall, request: CallRequest): void {
  call.request = request
  call.model = request.model.id
}

/** Adds the model to what its turn has added to the trace. */
function nameModel(
  trace: RoutingTrace,
  before: { readonly eliminated: number; readonly attempts: number },
  model: string,
): void {
  const { eliminated, attempts } = trace
  for (const [i, { line, reason, detail }] of eliminated.entries())
    if (i >= before.eliminated) eliminated[i] = { line, model, reason, detail }
  trace.attempts = attempts.map((attempt, i) => (i < before.attempts ? attempt : { ...attempt, model }))
}

/**
 * Returns the refusal of a call that no model served. If one of them may serve it later, the refusal says so, whatever
 * another one, which the caller may not have named, found in the request.
 */
function refusalOf(refusals: readonly ModelRefusal[], { body }: CallRequest): GatewayError {
  const [first] = refusals as readonly [ModelRefusal]
  if (refusals.length === 1) return first.error
  const temporary = refusals.filter(isTemporary)
  const failures = temporary.flatMap(({ failures }) => failures)
  const rests = temporary.flatMap(({ restMs }) => restMs ?? [])
  if (failures.length > 0)
    return finalErrorOf(failures, body, rests.length > 0 ? Math.min(...rests) : undefined)
  const deciding = temporary[0] ?? refusals.find(({ failures }) => failures.length > 0) ?? first
  return deciding.error
}

function isTemporary({ error, failures, elsewhere }: ModelRefusal): boolean {
  if (failures.length > 0) return elsewhere
  return error.tier === 'after_wait' || error.tier === 'backoff'
}

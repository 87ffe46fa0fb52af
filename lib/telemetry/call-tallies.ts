import type { Meter } from '@opentelemetry/api'
import { ATTRIBUTE } from './attributes.ts'
import { Tally } from './tally.ts'

/** Amounts are counted in nano-units. */
const NANOS = 1_000_000_000

/** The counters of calls, each with the attributes that its counts are told apart by. */
export function callTallies(meter: Meter) {
  const tally = (
    name: string,
    unit: string,
    description: string,
    attributes: readonly string[],
    scale?: number,
  ) =>
    new Tally(
      meter.createObservableCounter(`model_gateway.${name}`, { unit, description }),
      attributes,
      scale,
    )
  const { operation, model, status, error, outcome, line } = ATTRIBUTE
  return {
    calls: tally('calls', '{call}', 'Calls that have ended', [operation, model, status, error, outcome]),
    attempts: tally('attempts', '{attempt}', 'Attempts on lines', [line, outcome, ATTRIBUTE.timeoutPhase]),
    retries: tally('retries', '{attempt}', 'Attempts behind the first one of their call', [model]),
    withheldRetries: tally(
      'retries.withheld',
      '{call}',
      "Calls that were tried no further because their model's retry budget was spent",
      [model],
    ),
    eliminations: tally('eliminations', '{line}', 'Lines that a filter removed', [line, ATTRIBUTE.reason]),
    tokens: tally('tokens', '{token}', 'Tokens that calls used', [
      model,
      ATTRIBUTE.tokenType,
      ATTRIBUTE.usageSource,
    ]),
    charges: tally('charges', 'USD', 'What calls were charged', [model], NANOS),
    limitRefusals: tally('limit.refusals', '{call}', 'Calls that a limit refused', [
      ATTRIBUTE.limitKind,
      ATTRIBUTE.limitLevel,
    ]),
    idempotency: tally('idempotency', '{call}', 'What became of calls with an Idempotency-Key', [outcome]),
  }
}

import type { Meter } from '@opentelemetry/api'
import { IN_USD, Tally } from './tally.ts'

export function callTallies(meter: Meter) {
  const tally = (name: string, unit: string, description: string, scale?: number) =>
    new Tally(meter.createObservableCounter(`model_gateway.${name}`, { unit, description }), scale)
  return {
    calls: tally('calls', '{call}', 'Calls that have ended'),
    attempts: tally('attempts', '{attempt}', 'Attempts on lines'),
    retries: tally('retries', '{attempt}', 'Attempts after the first of a call'),
    withheldRetries: tally(
      'retries.withheld',
      '{call}',
      "Calls that were tried no further because their model's retry budget was spent",
    ),
    eliminations: tally('eliminations', '{line}', 'Lines that a filter removed'),
    tokens: tally('tokens', '{token}', 'Tokens that calls used'),
    charges: tally('charges', 'USD', 'Amounts charged', IN_USD),
    limitRefusals: tally('limit.refusals', '{call}', 'Calls that a limit refused'),
    guards: tally('guards', '{call}', 'Decisions of guards about the input and output of calls'),
    cache: tally('cache', '{call}', 'Cache lookups'),
    idempotency: tally('idempotency', '{call}', 'Outcomes of calls with an Idempotency-Key'),
  }
}

import type { Histogram, Meter } from '@opentelemetry/api'
import { Labelled } from './labelled.ts'

/** The bucket bounds that the semantic conventions advise, in seconds and in tokens. */
const DURATIONS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const FIRST_TOKENS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const TOKENS = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
]

/** A histogram and its cached attribute sets. */
interface LabelledHistogram {
  readonly histogram: Histogram
  readonly labels: Labelled
}

export function callHistograms(meter: Meter) {
  const histogram = (
    name: string,
    unit: string,
    description: string,
    bounds: number[],
  ): LabelledHistogram => ({
    histogram: meter.createHistogram(name, {
      unit,
      description,
      advice: { explicitBucketBoundaries: bounds },
    }),
    labels: new Labelled(),
  })
  return {
    duration: histogram(
      'gen_ai.server.request.duration',
      's',
      'Calls that run a model, from their begin to their end',
      DURATIONS,
    ),
    firstToken: histogram(
      'gen_ai.server.time_to_first_token',
      's',
      'Completed streams, from the beginning of the call to the first byte of the answer',
      FIRST_TOKENS,
    ),
    attemptDuration: histogram(
      'gen_ai.client.operation.duration',
      's',
      'Attempts on lines, from sending to their end',
      DURATIONS,
    ),
    tokenUsage: histogram('gen_ai.client.token.usage', '{token}', 'Tokens of a call', TOKENS),
  }
}

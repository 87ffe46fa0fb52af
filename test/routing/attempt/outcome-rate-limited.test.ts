import type { ServerResponse } from 'node:http'
import { OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { type OutcomeRow, SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { answerJson } from '../../support/scripted-upstream.ts'

const body = { error: { type: 'rate_limit_error', message: SECRET } }
const says =
  (headers: Record<string, string | (() => string)>, json: unknown = body) =>
  (res: ServerResponse) =>
    answerJson(
      res,
      429,
      json,
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : value()]),
      ),
    )

const limited: Omit<OutcomeRow, 'does' | 'script'> = {
  code: 'upstream_rate_limited',
  upstreamStatus: 429,
  failsOver: true,
  blames: false,
}
const date = (inMs: number) => () => new Date(Date.now() + inMs).toUTCString()
const google = (delay: string) => ({
  error: {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: SECRET,
    details: [
      { '@type': 'type.googleapis.com/google.rpc.Help' },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: delay },
    ],
  },
})

testOutcomes('a line that answers 429', [
  { ...limited, does: 'does not say how long', script: says({}) },
  {
    ...limited,
    does: 'says it in seconds',
    script: says({ 'retry-after': '17' }),
    retryAfterMs: [16_500, 17_000],
  },
])

// The fault table has senseless waits, and the test of `retryAfterOf` further notations.
testOutcomes('a line that answers 429, in other notations', [
  ...(
    [
      {
        does: 'says it as a date',
        script: says({ 'retry-after': date(30_000) }),
        retryAfterMs: [28_000, 30_000],
      },
      {
        does: 'says it in milliseconds too, which are finer',
        script: says({ 'retry-after': '3', 'retry-after-ms': '2345' }),
        retryAfterMs: [2000, 2345],
      },
      {
        does: 'says more than a minute',
        script: says({ 'retry-after': '3600' }),
        retryAfterMs: [59_000, 60_000],
      },
      { does: 'says it twice', script: says({ 'retry-after': '5, 5' }), retryAfterMs: [900, 1000] },
      {
        does: 'says it as RetryInfo in the body',
        script: says({}, google('34.4s')),
        retryAfterMs: [34_000, 34_400],
      },
    ] satisfies Partial<OutcomeRow>[]
  ).map((row) => ({ ...limited, modes: [OPENAI, OPENAI_STREAM], ...row }) as OutcomeRow),
])

import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { retryAfterOf } from '../../../lib/routing/attempt/upstream-retry-after.ts'

const NOW = Date.UTC(2026, 10, 24, 12)
const google = (...details: unknown[]) => ({ error: { code: 429, details } })
const delay = (retryDelay: unknown) => ({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay })

describe('the wait that an upstream requests', () => {
  const rows: [
    what: string,
    headers: Record<string, string | string[]>,
    body: unknown,
    ms: number | undefined,
  ][] = [
    ['nothing', {}, {}, undefined],
    ['an empty header', { 'retry-after': '' }, undefined, undefined],
    ['seconds', { 'retry-after': '7' }, undefined, 7000],
    ['a part of a second', { 'retry-after': '0.25' }, undefined, 250],
    ['seconds with blanks', { 'retry-after': ' 7 ' }, undefined, 7000],
    ['milliseconds', { 'retry-after-ms': '70' }, undefined, 70],
    ['both', { 'retry-after': '7', 'retry-after-ms': '70' }, undefined, 70],
    ['milliseconds that are none', { 'retry-after': '7', 'retry-after-ms': '0' }, undefined, 7000],
    ['a date', { 'retry-after': 'Tue, 24 Nov 2026 12:00:09 GMT' }, undefined, 9000],
    ['a date in the past', { 'retry-after': 'Tue, 24 Nov 2026 11:00:00 GMT' }, undefined, 1000],
    [
      'a date of a clock that is ahead',
      { 'retry-after': 'Tue, 24 Nov 2026 13:00:09 GMT', date: 'Tue, 24 Nov 2026 13:00:00 GMT' },
      undefined,
      9000,
    ],
    [
      'a date of a clock that is behind',
      { 'retry-after': 'Tue, 24 Nov 2026 11:00:09 GMT', date: 'Tue, 24 Nov 2026 11:00:00 GMT' },
      undefined,
      9000,
    ],
    [
      'a date of no known clock',
      { 'retry-after': 'Tue, 24 Nov 2026 12:00:09 GMT', date: 'x' },
      undefined,
      9000,
    ],
    [
      'seconds of another clock',
      { 'retry-after': '7', date: 'Tue, 24 Nov 2026 11:00:00 GMT' },
      undefined,
      7000,
    ],
    ['no wait', { 'retry-after': '0' }, undefined, 1000],
    ['a negative number', { 'retry-after': '-5' }, undefined, 1000],
    ['an invalid time', { 'retry-after': 'soon' }, undefined, 1000],
    ['several', { 'retry-after': ['3', '9'] }, undefined, 3000],
    ['an empty list', { 'retry-after': [] }, undefined, undefined],
    ['the info of Google', {}, google(delay('34.4s')), 34_400],
    ['the info of Google in a list', {}, [google(delay('2s'))], 2000],
    ['the info of Google behind others', {}, google({}, null, 'x', delay(5), delay('3s'), delay('9s')), 3000],
    ['the info of Google beside a header', { 'retry-after': '1' }, google(delay('9s')), 1000],
    ['the info of Google beside a senseless header', { 'retry-after': 'soon' }, google(delay('9s')), 9000],
    ['a senseless info of Google', {}, google(delay('-3s')), 1000],
  ]
  for (const [what, headers, body, ms] of rows)
    it(`is ${ms} ms for ${what}`, (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: NOW })
      assert.equal(retryAfterOf(headers as IncomingHttpHeaders, body), ms)
    })

  for (const other of ['3', '3m', 's', '3.s', 'x3s', '3s ', { seconds: 3 }, null])
    it(`is unknown for another form of the info: ${JSON.stringify(other)}`, () =>
      assert.equal(retryAfterOf({}, google(delay(other))), undefined))
  for (const body of [
    null,
    'x',
    [],
    [null],
    { error: 'x' },
    { error: { details: 'x' } },
    { details: [delay('3s')] },
  ])
    it(`is unknown for another body: ${JSON.stringify(body)}`, () =>
      assert.equal(retryAfterOf({}, body), undefined))
})

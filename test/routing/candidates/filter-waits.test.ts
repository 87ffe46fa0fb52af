import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { exchange, gatewayFor, OPENAI } from '../../support/exchange.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'

describe('the wait that a filter returns', async () => {
  const cleanUp = cleaningUp()
  const removed = await startUpstream()
  cleanUp.after(() => removed.close())

  it('"resting" returns the shortest rest of the lines it removed, and of no other', async (t) => {
    const wait = { 'a-1': '40', 'a-2': '25', b: '3' }
    removed.script = (res, { headers }) => {
      const line = String(headers['x-line']) as keyof typeof wait
      answerJson(res, 429, {}, { 'retry-after': wait[line] })
    }
    const gateway = await gatewayFor(t, {
      lines: Object.keys(wait).map((id) => ({
        url: removed.url,
        id,
        provider: id[0],
        headers: { 'x-line': id },
      })),
    })
    const first = await exchange(gateway)
    assert.equal(first.headers.get('retry-after'), '3')
    const sent = removed.requests.length
    const got = await exchange(gateway, OPENAI, { provider: { only: ['a'] } })
    assert.equal(got.status, 429)
    assert.equal(got.errorCode, 'upstream_rate_limited')
    const seconds = Number(got.headers.get('retry-after'))
    assert.ok(seconds > 20 && seconds <= 25, `${seconds} s`)
    assert.equal(removed.requests.length, sent, 'a resting line is not asked')
    const { routing } = await gateway.entry(got.requestId)
    assert.deepEqual(
      routing?.eliminated.map(({ line, reason }) => [line, reason]),
      [
        ['a-1', 'resting'],
        ['a-2', 'resting'],
        ['b', 'provider_constraint'],
      ],
    )
    assert.match(routing?.eliminated[0]?.detail ?? '', /\d+ ms/)
  })

  const TRIED: { seconds: string; rest: string; least: number; most: number }[] = [
    { seconds: '40', rest: '20', least: 15, most: 20 },
    { seconds: '5', rest: '20', least: 5, most: 5 },
  ]
  for (const { seconds, rest, least, most } of TRIED)
    it(`a line that rests ${rest} s counts where the other asks for ${seconds} s`, async (t) => {
      removed.script = (res, { headers }) => {
        answerJson(res, 429, {}, { 'retry-after': headers['x-line'] === 'a' ? rest : seconds })
      }
      const gateway = await gatewayFor(t, {
        lines: ['a', 'b'].map((id) => ({ url: removed.url, id, headers: { 'x-line': id } })),
      })
      await exchange(gateway, OPENAI, { provider: { only: ['a'] } })
      const sent = removed.requests.length
      const got = await exchange(gateway)
      assert.equal(got.errorCode, 'upstream_rate_limited')
      const told = Number(got.headers.get('retry-after'))
      assert.ok(told >= least && told <= most, `${told} s`)
      assert.equal(removed.requests.length, sent + 1, 'a resting line is not asked')
      const excluding = await exchange(gateway, OPENAI, { provider: { ignore: ['a'] } })
      const other = Number(excluding.headers.get('retry-after'))
      const own = Number(seconds)
      assert.ok(other >= own - 4 && other <= own, `${other} s: the rest of an excluded line is of no use`)
    })

  it('"circuit_open" returns when the first of the lines it removed is probed, and of no other', async (t) => {
    removed.script = (res) => answerJson(res, 500, {})
    const line = (id: string, resetMs: number) => ({
      url: removed.url,
      id,
      circuit: { minimumCalls: 1, resetMs },
    })
    const gateway = await gatewayFor(t, { lines: [line('a', 40_000), line('b', 3000)] })
    await exchange(gateway)
    const got = await exchange(gateway, OPENAI, { provider: { only: ['a'] } })
    assert.equal(got.status, 503)
    assert.equal(got.errorCode, 'circuit_open')
    const seconds = Number(got.headers.get('retry-after'))
    assert.ok(seconds > 30 && seconds <= 40, `${seconds} s`)
    assert.equal(got.headers.get('x-should-retry'), 'true')
    const { routing } = await gateway.entry(got.requestId)
    assert.deepEqual(routing?.eliminated[0], { line: 'a', reason: 'circuit_open', detail: 'open' })
  })
})

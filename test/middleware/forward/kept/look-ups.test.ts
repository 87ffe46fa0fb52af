import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig } from '../../../../lib/core/config/index.ts'
import { candidateOf } from '../../../../lib/middleware/forward/forward-options.ts'
import { LookUps } from '../../../../lib/middleware/forward/kept/look-ups.ts'
import { LineRegistry } from '../../../../lib/middleware/route/index.ts'
import { answerJson, closedPort, startUpstream } from '../../../support/scripted-upstream.ts'

/** A line that answers each path as a test says, and what is asked of it. */
async function asking(t: TestContext, at?: string) {
  const upstream = await startUpstream((res, { path }) => {
    const [, status = '200', text = '{}'] = decodeURIComponent(path).split('|')
    if (status === 'never') return
    res.writeHead(Number(status), { 'content-type': 'application/json', 'retry-after': '7' }).end(text)
  })
  t.after(() => upstream.close())
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${at ?? upstream.url}/v1`, models: {} }],
  })
  const lines = new LineRegistry()
  t.after(() => lines.close())
  const leaving = new AbortController()
  const lookUps = (...answers: string[]) => {
    const requests = answers.map(
      (answer) => ({ method: 'GET', path: `/x${encodeURIComponent(`|${answer}`)}` }) as const,
    )
    const asked = new LookUps(requests, leaving.signal)
    const [line] = catalog.lines
    assert.ok(line)
    return { asked, end: asked.attempt(candidateOf(line, lines)) }
  }
  return { upstream, leaving, lookUps }
}

const FAILED = { kind: 'failed', committed: false, elsewhere: false }

describe('things that a line is asked for at once', () => {
  it('are what it says of each, in their order, and nothing for those that it does not have', async (t) => {
    const { lookUps, upstream } = await asking(t)
    const { asked, end } = lookUps(
      '200|{"id":"a"}',
      '404|{}',
      '200|{"id":"b"}',
      '405|',
      '410|no',
      '200|{"id":"c"}',
    )
    assert.deepEqual(await end, { kind: 'served' })
    assert.deepEqual(asked.found, [{ id: 'a' }, undefined, { id: 'b' }, undefined, undefined, { id: 'c' }])
    assert.deepEqual([asked.record?.outcome, asked.record?.line], ['completed', 'l'])
    assert.equal(upstream.requests.length, 6)
    assert.equal(asked.finish(), undefined)
    const alone = lookUps('404|{}')
    assert.deepEqual(await alone.end, { kind: 'served' })
    assert.deepEqual([alone.asked.found, alone.asked.record?.outcome], [[undefined], 'completed'])
  })

  it('are none where none is asked for', async (t) => {
    const { lookUps } = await asking(t)
    const { asked, end } = lookUps()
    assert.deepEqual([await end, asked.found, asked.record], [{ kind: 'served' }, [], undefined])
  })

  for (const [answer, code, lineFault] of [
    ['500|{}', 'upstream_error', true],
    ['401|{}', 'upstream_error', true],
    ['400|{}', 'invalid_request', false],
    ['429|{}', 'upstream_rate_limited', false],
    ['200|[]', 'upstream_error', true],
    ['200|no JSON', 'upstream_error', true],
    ['200|7', 'upstream_error', true],
  ] as const)
    it(`fail as the first of them that fails: ${answer}`, async (t) => {
      const { lookUps } = await asking(t)
      for (const answers of [[answer], ['200|{"id":"a"}', answer, '501|{}'], ['404|{}', answer]]) {
        const { asked, end } = lookUps(...answers)
        const { failure, ...rest } = (await end) as Extract<Awaited<typeof end>, { kind: 'failed' }>
        assert.equal(failure.code, code)
        assert.deepEqual(rest, { ...FAILED, lineFault })
        assert.equal(asked.record?.outcome, code)
      }
    })

  it('fail where the line cannot be reached', async (t) => {
    const { lookUps } = await asking(t, `http://127.0.0.1:${await closedPort()}`)
    const { asked, end } = lookUps('200|{}')
    assert.equal((await end).kind, 'failed')
    assert.equal(asked.record?.outcome, 'upstream_error')
  })

  it('are given up once nobody waits for them', async (t) => {
    const { lookUps, leaving, upstream } = await asking(t)
    upstream.script = (res, { path }) => {
      if (path.includes('never')) leaving.abort()
      else answerJson(res, 200, {})
    }
    const { end } = lookUps('200|{}', 'never')
    assert.equal((await end).kind, 'abandoned')
  })
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { chatAnswer, startUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 3_600_000

it('the line of a call has the time that it took, although the wall clock was set meanwhile', async (t) => {
  const now = Date.now.bind(Date)
  let aheadMs = 0
  t.mock.method(Date, 'now', () => now() + aheadMs)
  const upstream = await startUpstream((res) => {
    aheadMs -= HOUR_MS
    chatAnswer(res)
  })
  t.after(() => upstream.close())
  const { send, logged } = await assembledGateway(t, {
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [
      { id: 'a', provider: 'a', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'm' } },
    ],
  })
  const answer = await send('/v1/chat/completions', {
    model: 'chat',
    messages: [{ role: 'user', content: 'hi' }],
  })
  assert.equal(answer.status, 200)
  await answer.arrayBuffer()
  const line = () => logged.find(({ message }) => message === 'call')?.fields as { ms: number } | undefined
  await until(() => line() !== undefined, 'the line')
  assert.ok(Number.isInteger(line()?.ms) && Number(line()?.ms) >= 0, `${line()?.ms} ms`)
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { chatBody, startGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'

const CALLS = 8

it('a line whose name server hangs does not delay the look-up of another line', async (t) => {
  const dns = await startDnsServer(t)
  dns.names.set('hangs.example', 'hangs').set('answers.example', ['127.0.0.1'])
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  const { port } = new URL(upstream.url)
  const line = (id: string) => ({
    ...{ id, url: `http://${id}.example:${port}`, models: { [id]: 'u' }, timeouts: { connectMs: 1000 } },
  })
  const gateway = await startGateway({
    lines: [line('hangs'), line('answers')],
    config: { models: ['hangs', 'answers'].map((id) => ({ id, kind: 'chat' })) },
  })
  t.after(() => gateway.close())
  const ask = async (model: string) => {
    const answer = await gateway.post('/v1/chat/completions', chatBody({ model }))
    return answer.ok ? 'whole' : (await envelopeOf(answer)).error.code
  }
  const hanging = Promise.all(Array.from({ length: CALLS }, () => ask('hangs')))
  const answered = await Promise.all(Array.from({ length: CALLS }, () => ask('answers')))
  assert.deepEqual(answered, Array(CALLS).fill('whole'))
  assert.deepEqual(await hanging, Array(CALLS).fill('upstream_timeout'))
})

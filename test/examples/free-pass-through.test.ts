import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { it } from 'node:test'
import { startDemoModels } from '../../examples/gateway/demo-models/server.ts'
import { envelopeOf } from '../support/answer-bodies.ts'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { temporaryFolder } from '../support/gateway-process.ts'
import { untilAsync } from '../support/until.ts'

it('a free pass-through is served while the charges of others cannot be written', async (t) => {
  const demo = await startDemoModels()
  t.after(demo.close)
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const file = join(folder.path, 'gateway.db')
  const line = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${demo.url}/v1`, apiKey: 'any' }
  const gateway = await assembledGateway(
    t,
    {
      models: [{ id: 'chat', kind: 'chat' }],
      lines: [{ ...line, models: { chat: 'demo-chat' } }],
      passThrough: [
        { path: '/v1/free', lines: ['l'] },
        { path: '/v1/audio/speech', lines: ['l'], price: { perRequest: '0.01' } },
      ],
    },
    { databaseUrl: `sqlite:${file}` },
  )
  // The demo models have no such path.
  const free = async () => (await envelopeOf(await gateway.send('/v1/free'))).error.code
  const paid = async () => {
    const answer = await gateway.send('/v1/audio/speech', { model: 'demo', voice: 'alloy', input: 'Hello' })
    await answer.arrayBuffer()
    return answer.status
  }
  assert.deepEqual([await free(), await paid()], ['not_found', 200])
  const other = new DatabaseSync(file)
  t.after(() => other.close())
  other.exec('begin immediate')
  await untilAsync(async () => (await paid()) === 503, 'the refusal of paid calls')
  for (let i = 0; i < 5; i++) assert.equal(await free(), 'not_found')
  assert.equal(await paid(), 503)
  other.exec('rollback')
  await untilAsync(async () => (await paid()) === 200, 'paid calls again')
})

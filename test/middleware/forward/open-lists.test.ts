import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KeptThings, MemoryKeptStore } from '../../../lib/middleware/references/index.ts'
import { forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'

const VOICES = '/v1/audio/voices'

describe('voices, where the rule does not say that they are kept', () => {
  it('are listed by the line, and only used, changed and deleted by the account that made them', async (t) => {
    const listed = { voices: [{ id: 'amber' }, { id: 'basil' }] }
    const upstream = await startUpstream((res, { method }) =>
      answerJson(res, 200, method === 'GET' ? listed : { id: 'voice_1', object: 'audio.voice' }),
    )
    t.after(() => upstream.close())
    const rules = [{ path: '/v1/audio/*rest', lines: ['line-0'] }]
    const kept = new KeptThings({ store: new MemoryKeptStore() })
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules, kept })
    const status = async (method: string, path: string, key?: string) => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const answer = await gateway.ask(path, { method, headers })
      await answer.arrayBuffer()
      return answer.status
    }

    assert.deepEqual(await (await gateway.ask(VOICES)).json(), listed)
    assert.equal(await status('POST', VOICES), 200)
    upstream.requests.length = 0
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE'])
      assert.equal(await status(method, `${VOICES}/voice_1`, OTHER_KEY), 404, method)
    assert.equal(await status('DELETE', '/v1/audio/Voices/voice_1/', OTHER_KEY), 404)
    assert.equal(upstream.requests.length, 0, 'the line was not asked')
    assert.equal(await status('DELETE', `${VOICES}/voice_1`), 200)
  })
})

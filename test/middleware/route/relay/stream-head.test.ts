import assert from 'node:assert/strict'
import { it } from 'node:test'
import { exchange, gatewayFor, OPENAI_STREAM, saidTo } from '../../../support/exchange.ts'
import { chatChunk, startUpstream } from '../../../support/scripted-upstream.ts'

it('a stream may begin with a byte order mark, and its type be written in capitals', async (t) => {
  const upstream = await startUpstream((res) => {
    res.writeHead(200, { 'content-type': 'Text/Event-Stream;charset=UTF-8' })
    res.end(`\ufeff${chatChunk({ content: 'Hello' }, 'stop')}data: [DONE]\n\n`)
  })
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
  const got = await exchange(gateway, OPENAI_STREAM)
  assert.equal(got.status, 200)
  assert.equal(saidTo(OPENAI_STREAM, { ...got, text: got.text.replace('\ufeff', '') }), 'Hello')
})

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'

const BATCH = '{"id":"batch_1","output_file_id":null}'

/** A gateway before a line that answers with a batch. */
async function batches(t: TestContext, compresses: boolean) {
  const upstream = await byteUpstream(t, ({ method }, res) => {
    const body = compresses ? gzipSync(BATCH) : Buffer.from(BATCH)
    const encoding = compresses ? { 'content-encoding': 'gzip' } : {}
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length, ...encoding })
    res.end(method === 'HEAD' ? undefined : body)
  })
  const kept = new KeptThings()
  t.after(() => kept.close())
  const rules = ['/v1/batches', '/v1/batches/*rest'].map((path) => ({ path, lines: ['line-0'] }))
  return forwardGateway(t, { lines: [upstream.url], rules, kept })
}

describe('the head of an answer that is read before it is sent', () => {
  it('does not say that the body is compressed, which it no longer is', async (t) => {
    const gateway = await batches(t, true)
    const made = await gateway.ask('/v1/batches', { method: 'POST' })
    assert.equal(made.headers.get('content-encoding'), null)
    assert.equal(await made.text(), BATCH)
    assert.equal(await (await gateway.ask('/v1/batches/batch_1')).text(), BATCH)
  })

  it('is that of the line where nothing but the head is asked for', async (t) => {
    const gateway = await batches(t, false)
    await gateway.ask('/v1/batches', { method: 'POST' })
    const head = await gateway.ask('/v1/batches/batch_1', { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal(head.headers.get('content-length'), String(BATCH.length))
  })
})

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import { it, type TestContext } from 'node:test'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'

type Write = (this: Socket, ...given: unknown[]) => unknown

/** Has the system take what is sent to a port some turns after it was given, as that of a busy connection does. */
function sendLate(t: TestContext, port: number): void {
  const methods = Socket.prototype as unknown as Record<'_write' | '_writev', Write>
  for (const name of ['_write', '_writev'] as const) {
    const write = methods[name]
    t.mock.method(methods, name, function (this: Socket, ...given: unknown[]) {
      if (this.remotePort === port) setTimeout(() => write.apply(this, given), 2)
      else write.apply(this, given)
    } satisfies Write)
  }
}

it('an upload comes whole to a line whose connection takes it slower than it comes', async (t) => {
  const upstream = await byteUpstream(t, async (req, res) => {
    const hash = createHash('sha256')
    for await (const piece of req) hash.update(piece as Buffer)
    res.end(hash.digest('hex'))
  })
  const gateway = await forwardGateway(t, { lines: [upstream.url] })
  sendLate(t, Number(new URL(upstream.url).port))
  const body = randomBytes(4 * 1024 * 1024)
  const headers = { 'content-type': 'application/octet-stream' }
  const answer = await gateway.ask('/v1/files', { method: 'POST', headers, body })
  const sent = createHash('sha256').update(body).digest('hex')
  assert.deepEqual([answer.status, await answer.text()], [200, sent])
})

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Socket } from 'node:net'
import { it, type TestContext } from 'node:test'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'

type Write = (this: Socket, ...given: unknown[]) => unknown

/** Has the system take what is sent between some ports a while after it was given, as that of a busy connection does. */
function sendLate(t: TestContext, isBusy: (socket: Socket) => boolean): void {
  const methods = Socket.prototype as unknown as Record<'_write' | '_writev', Write>
  for (const name of ['_write', '_writev'] as const) {
    const write = methods[name]
    t.mock.method(methods, name, function (this: Socket, ...given: unknown[]) {
      if (isBusy(this)) setTimeout(() => write.apply(this, given), 2)
      else write.apply(this, given)
    } satisfies Write)
  }
}

const body = randomBytes(4 * 1024 * 1024)
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

it('an upload comes whole to a line whose connection takes it slower than it comes', async (t) => {
  const upstream = await byteUpstream(t, async (req, res) => {
    const hash = createHash('sha256')
    for await (const piece of req) hash.update(piece as Buffer)
    res.end(hash.digest('hex'))
  })
  const gateway = await forwardGateway(t, { lines: [upstream.url] })
  const port = Number(new URL(upstream.url).port)
  sendLate(t, ({ remotePort }) => remotePort === port)
  const headers = { 'content-type': 'application/octet-stream' }
  const answer = await gateway.ask('/v1/files', { method: 'POST', headers, body })
  assert.deepEqual([answer.status, await answer.text()], [200, sha256(body)])
})

it('a download comes whole to a caller whose connection takes it slower than it comes', async (t) => {
  const upstream = await byteUpstream(t, (_req, res) => void res.end(body))
  const gateway = await forwardGateway(t, { lines: [upstream.url] })
  sendLate(t, ({ localPort }) => localPort === gateway.port)
  const answer = await gateway.ask('/v1/files/f1/content')
  assert.deepEqual([answer.status, sha256(new Uint8Array(await answer.arrayBuffer()))], [200, sha256(body)])
})

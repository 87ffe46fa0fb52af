import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { rawClient } from '../../support/app-server.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/** The type of a body, and whether nothing is a body of it. */
const TYPES: readonly (readonly [type: string, passes: boolean])[] = [
  ['', true],
  ['text/plain', true],
  ['application/octet-stream', true],
  ['application/x-www-form-urlencoded', true],
  ['multipart/form-data; boundary=b', true],
  ['application/json', false],
]

describe('an upload in pieces of which none comes', () => {
  for (const [type, passes] of TYPES)
    it(`is answered, whenever it ends: ${type || 'no type'}`, async (t) => {
      const upstream = await byteUpstream(t, async (req, res) => {
        res.end(`${(await bytesOf(req)).length} bytes`)
      })
      const kept = new KeptThings()
      t.after(() => kept.close())
      const gateway = await forwardGateway(t, {
        lines: [upstream.url],
        rules: [{ path: '/v1/odd/*rest', lines: ['line-0'] }],
        kept,
      })
      const named = type === '' ? '' : `content-type: ${type}\r\n`
      const head = `POST /v1/odd/thing HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: close\r\n${named}transfer-encoding: chunked\r\n\r\n`
      const end = '0\r\n\r\n'
      const atOnce = rawClient(gateway.port, head + end)
      assert.match(await atOnce.end(), passes ? /^HTTP\/1.1 200 .*0 bytes/s : /^HTTP\/1.1 400 /)
      const late = rawClient(gateway.port, head)
      await until(() => gateway.openCalls.size === 1)
      late.socket.write(end)
      assert.match(await late.end(), passes ? /^HTTP\/1.1 200 .*0 bytes/s : /^HTTP\/1.1 400 /)
      assert.equal(upstream.requests.length, passes ? 2 : 0)
    })
})

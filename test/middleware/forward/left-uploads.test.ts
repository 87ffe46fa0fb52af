import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const TYPES = [
  undefined,
  'application/octet-stream',
  'application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=b',
  'text/plain',
]
const FRAMINGS = ['content-length: 9999999', 'transfer-encoding: chunked'] as const
/** What comes of a body; the head alone is the case in which nothing tells what the body is. */
const PIECES = ['', ' ', '{"a":', 'bytes']
const LEAVES_AFTER_MS = [0, 60]

function headOf(type: string | undefined, framing: string): string {
  const named = type === undefined ? '' : `content-type: ${type}\r\n`
  return `POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n${named}${framing}\r\n\r\n`
}

function pieceOf(piece: string, framing: string): string {
  if (piece === '' || framing === FRAMINGS[0]) return piece
  return `${piece.length.toString(16)}\r\n${piece}\r\n`
}

describe('a caller that leaves in the middle of an upload', () => {
  for (const type of TYPES)
    for (const framing of FRAMINGS)
      it(`leaves no connection, slot or money behind: ${type ?? 'no type'}, ${framing}`, async (t) => {
        const upstream = await byteUpstream(t, (req) => void req.resume())
        const gateway = await forwardGateway(t, {
          lines: [upstream.url],
          account: { limits: { concurrency: 1 } },
        })
        for (const piece of PIECES)
          for (const wait of LEAVES_AFTER_MS) {
            const client = rawClient(gateway.port, headOf(type, framing) + pieceOf(piece, framing))
            await until(() => gateway.openCalls.size === 1)
            await sleep(wait)
            client.socket.destroy()
            await until(() => gateway.openCalls.size === 0, 'the end of the call', 1000)
            await until(() => upstream.connections.size === 0, 'the end of the upstream', 1000)
          }
        await sleep(100)
        assert.equal(upstream.connections.size, 0)
        assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
      })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LateLedger } from '../../ledger/late-ledger.ts'
import { rawClient } from '../../support/app-server.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import { KEY } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { webSocketUpstream } from '../../support/websocket-upstream.ts'

const HANDSHAKE = `GET /v1/realtime?model=voice HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`

describe('a caller that leaves while its WebSocket is being charged', () => {
  for (const how of ['destroy', 'resetAndDestroy', 'end'] as const)
    it(`leaves no connection to the line behind (${how})`, async (t) => {
      const upstream = await webSocketUpstream(t)
      const ledger = new LateLedger({ accounts: [{ id: 'acme', balance: '10' }], keys: [{ id: 'key_acme' }] })
      const gateway = await forwardGateway(t, {
        lines: [upstream.url],
        rules: [{ path: '/v1/realtime', lines: ['line-0'], price: { perRequest: '0.01' } }],
        ledger,
      })
      t.after(() => ledger.open())
      const client = rawClient(gateway.port, HANDSHAKE)
      await until(() => ledger.held === 1 && upstream.sessions.size === 1, 'the commit')
      client.socket[how]()
      await until(() => [...gateway.openCalls].every(({ left }) => left), 'the caller has left')
      ledger.open()
      await until(() => gateway.openCalls.size === 0, 'the end of the call')
      await until(() => upstream.sessions.size === 0, 'the end of the session at the line', 2000)
      assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
    })
})

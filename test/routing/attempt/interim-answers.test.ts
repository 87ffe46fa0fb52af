import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  buildConnector,
  type ConnectionAware,
  UpstreamConnection,
} from '../../../lib/routing/lines/upstream-connection.ts'

/** A connection to a server that answers each request with these pieces, each on its own. */
async function connected(t: TestContext, ...answers: (readonly string[])[]) {
  let requests = 0
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', async () => {
      for (const piece of answers[requests++] ?? []) {
        socket.write(piece, 'latin1')
        await sleep(2)
      }
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const connection = new UpstreamConnection(`http://127.0.0.1:${port}`, {}, buildConnector({}))
  t.after(async () => {
    await connection.destroy()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    connection,
    /** The status and the body of an answer, and whether the connection had carried a request before. */
    ask(): Promise<[status: number, body: string, isUsed: boolean]> {
      return new Promise((resolve, reject) => {
        let [status, body, isUsed] = [0, '', false]
        const handler: ConnectionAware = {
          connection: undefined,
          onRequestStart() {
            isUsed = (handler.connection?.requests ?? 0) > 0
            handler.connection?.begin()
          },
          onResponseStart(_controller, given) {
            status = given
          },
          onResponseData(_controller, chunk) {
            body += chunk
          },
          onResponseEnd: () => resolve([status, body, isUsed]),
          onResponseError: (_controller, error) => reject(error),
        }
        connection.dispatch({ method: 'GET', path: '/' }, handler)
      })
    },
  }
}

const FINAL = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'

describe('interim answers of a line', () => {
  const rows: [what: string, answer: string, status: number, body: string][] = [
    ['none', FINAL, 200, 'hello'],
    ['none before an error', FINAL.replace('200', '503'), 503, 'hello'],
    ['a 100', CONTINUE + FINAL, 200, 'hello'],
    ['a 102 before an error', `HTTP/1.1 102 Processing\r\n\r\n${FINAL.replace('200', '404')}`, 404, 'hello'],
    ['several', CONTINUE + HINTS + CONTINUE + FINAL, 200, 'hello'],
    [
      'what looks like one in a body',
      FINAL.replace('5', `${CONTINUE.length}`).replace('hello', CONTINUE),
      200,
      CONTINUE,
    ],
  ]
  for (const [what, answer, status, body] of rows)
    it(`are not passed on: ${what}`, async (t) => {
      const cuts = [
        [answer],
        [...answer],
        ...[3, 9, 10, 12, 30].map((at) => [answer.slice(0, at), answer.slice(at)]),
      ]
      const { ask } = await connected(t, ...cuts)
      for (const [i] of cuts.entries()) assert.deepEqual(await ask(), [status, body, i > 0])
    })

  it('make the answer malformed if the head of one does not end within 64 KiB', async (t) => {
    const long = (length: number) => `HTTP/1.1 103 Early Hints\r\nlink: ${'x'.repeat(length)}\r\n\r\n`
    const { ask } = await connected(t, [long(60_000), FINAL], [long(70_000), FINAL])
    assert.deepEqual(await ask(), [200, 'hello', false])
    await assert.rejects(ask())
  })

  it('do not include a change of the protocol that was not requested', async (t) => {
    const { ask } = await connected(t, [
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      FINAL,
    ])
    await assert.rejects(ask())
  })
})

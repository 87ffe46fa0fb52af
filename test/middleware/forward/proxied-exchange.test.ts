import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { candidateOf } from '../../../lib/middleware/forward/forward-options.ts'
import { ProxiedExchange } from '../../../lib/middleware/forward/proxied-exchange.ts'
import { LineRegistry } from '../../../lib/middleware/route/index.ts'
import { type ByteScript, bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { sentRequest } from './kept/sent-body.ts'

const CHUNKED = { 'transfer-encoding': 'chunked' }

/** An exchange with a line whose caller a test speaks for. */
async function exchanging(
  t: TestContext,
  script: ByteScript | number,
  watch?: (piece: Buffer | null) => void,
) {
  const upstream = typeof script === 'number' ? undefined : await byteUpstream(t, script)
  const origin = upstream?.url ?? `http://127.0.0.1:${script}`
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${origin}/v1`, models: {} }],
  })
  const [line] = catalog.lines
  assert.ok(line)
  const caller = Object.assign(sentRequest(CHUNKED), { socket: new Socket() })
  const exchange = new ProxiedExchange(candidateOf(line, new LineRegistry()), caller, watch && { watch })
  const target = {
    origin,
    path: '/v1/x',
    method: 'POST',
    headers: CHUNKED,
    lineHeaders: {},
    agent: undefined,
  }
  t.after(() => exchange.abandon())
  /** Waits until the upload has begun. */
  const connected = () => until(() => exchange.connected && caller.listenerCount('data') > 0)
  return { upstream, caller, exchange, connected, send: () => exchange.send(target) }
}

const echo: ByteScript = async (req, res) => void res.end(await bytesOf(req))

describe('an upload to a line', () => {
  it('comes in its order, small pieces of a turn together and large ones alone', async (t) => {
    const seen: (number | undefined)[] = []
    const { caller, exchange, connected, send } = await exchanging(
      t,
      echo,
      (piece) => void seen.push(piece?.length),
    )
    const opened = send()
    await connected()
    const turns: readonly (readonly number[])[] = [[1, 2, 4095], [4096], [5, 4096, 6, 7], [8]]
    let letter = 0
    let sent = ''
    for (const turn of turns) {
      for (const bytes of turn) {
        const piece = String.fromCharCode(97 + letter++).repeat(bytes)
        sent += piece
        caller.write(piece)
      }
      await new Promise(setImmediate)
    }
    caller.write('last')
    caller.end()
    const opening = await opened
    assert.ok(opening.kind === 'answered')
    assert.equal(String(await bytesOf(opening.response)), `${sent}last`)
    assert.deepEqual(seen, [4098, 4096, 5, 4096, 13, 8, 4, undefined])
    assert.equal(exchange.status, 200)
    exchange.complete()
    assert.deepEqual(exchange.end, { kind: 'served' })
    for (const event of ['data', 'end']) assert.equal(caller.listenerCount(event), 0, event)
  })

  it('leaves no memory behind once it is written', async (t) => {
    const { caller, connected, send } = await exchanging(t, echo)
    const opened = send()
    await connected()
    const piece = Buffer.from(new ArrayBuffer(100_000))
    caller.write(piece)
    caller.end()
    assert.equal((await opened).kind, 'answered')
    await until(() => piece.length === 0, 'the piece is freed')
  })

  it('is read no faster than the line takes it, and goes on when it does', async (t) => {
    let take = (): void => {}
    const { caller, exchange, connected, send, upstream } = await exchanging(t, (req, res) => {
      take = () => void bytesOf(req).then((bytes) => res.end(String(bytes.length)))
    })
    const opened = send()
    await connected()
    for (let i = 0; i < 16; i++) caller.write(Buffer.alloc(500_000))
    await until(() => caller.isPaused() && upstream?.requests.length === 1, 'a line that takes no more')
    assert.ok(caller.readableLength > 0)
    take()
    await until(() => caller.readableLength === 0 && !caller.isPaused(), 'a line that has taken all')
    // It is the caller's turn again.
    exchange.look(performance.now() + 86_400_000, 0)
    assert.equal(exchange.end, undefined)
    caller.end()
    const opening = await opened
    assert.ok(opening.kind === 'answered')
    assert.equal(String(await bytesOf(opening.response)), String(16 * 500_000))
  })

  it('is waited for as long as its caller takes, and its answer as long as the line may', async (t) => {
    const { caller, exchange, connected, send } = await exchanging(t, (req) => void req.resume())
    const opened = send()
    await connected()
    const endInADay = () => {
      exchange.look(performance.now() + 86_400_000, 0)
      return exchange.end
    }
    assert.equal(endInADay(), undefined)
    caller.write('a piece')
    await until(() => caller.readableLength === 0)
    assert.equal(endInADay(), undefined)
    caller.end()
    await until(() => exchange.uploaded)
    const end = endInADay()
    assert.deepEqual(await opened, { kind: 'ended' })
    assert.ok(end?.kind === 'failed')
    assert.deepEqual([end.failure.code, end.failure.timeoutPhase], ['upstream_timeout', 'first_byte'])
  })

  it('ends with the refusal of a piece, of which nothing is sent', async (t) => {
    const refusal = new Error('not this one')
    const received: Buffer[] = []
    const { caller, exchange, connected, send, upstream } = await exchanging(
      t,
      (req) => void req.on('data', (piece: Buffer) => received.push(piece)),
      (piece) => {
        if (piece?.includes('secret')) throw refusal
      },
    )
    const opened = send()
    await connected()
    caller.write('first')
    await until(() => received.length === 1)
    caller.write('secret')
    assert.deepEqual(await opened, { kind: 'ended' })
    assert.equal(exchange.refusal, refusal)
    assert.deepEqual(exchange.end, { kind: 'abandoned' })
    await until(() => upstream?.connections.size === 0)
    assert.equal(String(Buffer.concat(received)), 'first')
  })
})

describe('the end of an exchange', () => {
  it('is a failure of the line where it cannot be connected to, which leaves the body for another', async (t) => {
    const { caller, exchange, send } = await exchanging(t, await closedPort())
    caller.write('body')
    assert.deepEqual(await send(), { kind: 'ended' })
    const { end } = exchange
    assert.ok(end?.kind === 'failed')
    assert.deepEqual(
      [end.elsewhere, end.committed, end.lineFault, end.failure.fault],
      [true, false, true, 'line'],
    )
    assert.equal(caller.readableDidRead, false)
  })

  it('is one of the model where it breaks off, and no other line is tried', async (t) => {
    for (const committed of [false, true]) {
      const { caller, exchange, send, connected } = await exchanging(t, (req) => void req.socket.destroy())
      const opened = send()
      await connected()
      exchange.committed = committed
      caller.end('body')
      assert.deepEqual(await opened, { kind: 'ended' })
      const { end } = exchange
      assert.ok(end?.kind === 'failed')
      assert.deepEqual(
        [end.elsewhere, end.committed, end.lineFault, end.failure.fault],
        [false, committed, true, 'model'],
      )
    }
  })

  it('is a failure where the answer breaks off, and none once it was passed on', async (t) => {
    for (const isWhole of [true, false]) {
      const { caller, exchange, send, connected } = await exchanging(t, (_req, res) => {
        res.writeHead(200, { 'content-length': isWhole ? 4 : 5 }).write('body', () => res.destroy())
      })
      const opened = send()
      await connected()
      caller.end()
      const opening = await opened
      assert.ok(opening.kind === 'answered')
      await bytesOf(opening.response).catch(() => {})
      if (isWhole) exchange.complete()
      const { kind } = await exchange.ended
      assert.equal(kind, isWhole ? 'served' : 'failed')
    }
  })

  it('is the first, and no request is left behind it', async (t) => {
    const { exchange, send, upstream, caller } = await exchanging(t, echo)
    const opened = send()
    exchange.abandon()
    exchange.complete()
    assert.deepEqual(await opened, { kind: 'ended' })
    assert.deepEqual(exchange.end, { kind: 'abandoned' })
    await new Promise(setImmediate)
    await until(() => upstream?.connections.size === 0)
    assert.equal(upstream?.requests.length, 0)
    assert.equal(caller.readableDidRead, false)
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { exchange, gatewayFor, type Mode, modeName, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { startRawServer } from '../../support/raw-server.ts'
import { chatEvents } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const BODY = JSON.stringify({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`
const EVENTS = chatEvents(['Hello']).join('')
const STREAM = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${EVENTS.length}\r\n\r\n${EVENTS}`
const answerTo = (head: string) => (head.includes('x-wants: stream') ? STREAM : ANSWER)

/** The call whose connection dies says this word. */
const MARK = 'unlucky'
const NEIGHBOUR = 'sk-neighbour'

/** When the line closes its connection, counted by what it has read of the request. */
type Moment = 'idle' | 'first bytes' | 'half' | 'whole' | 'interim' | 'answer head' | 'answer part'

/** The requests that a line has received. */
interface Received {
  /** Of the marked call: requests that began, and those that came whole. */
  begun: number
  whole: number
  /** Other requests that came whole. */
  others: number
}

/** A line that counts what it receives, and closes the connection of the first marked request of each test. */
async function countingLine(t: TestContext, moment: Moment | undefined, close: (socket: Socket) => void) {
  const received: Received = { begun: 0, whole: 0, others: 0 }
  const open = new Set<Socket>()
  let hasClosed = moment === undefined
  const server = createServer((socket) => {
    open.add(socket)
    let head = ''
    let bytes = 0
    let isMarked = false
    const die = (): void => {
      hasClosed = true
      close(socket)
    }
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      if (socket.destroyed || socket.writableEnded) return
      if (head === '') {
        const end = chunk.indexOf('\r\n\r\n')
        head = chunk.toString('latin1', 0, end)
        bytes = -end - 4
        isMarked = chunk.includes(MARK)
        if (isMarked) received.begun++
      }
      bytes += chunk.length
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
      const isWhole = bytes >= length
      if (isWhole) received[isMarked ? 'whole' : 'others']++
      if (isMarked && !hasClosed) {
        if (moment === 'first bytes' || (moment === 'half' && bytes >= length / 2)) return die()
        if (moment === 'interim') {
          hasClosed = true
          socket.pause().write('HTTP/1.1 100 Continue\r\n\r\n')
          setTimeout(() => close(socket), 20)
          return
        }
        if (isWhole) {
          if (moment === 'whole') return die()
          const all = answerTo(head)
          socket.write(
            all.slice(0, moment === 'answer head' ? all.indexOf('\r\n\r\n') + 4 : -(all.length >> 2)),
          )
          hasClosed = true
          setTimeout(() => close(socket), 20)
          return
        }
      }
      if (!isWhole) return
      const all = answerTo(head)
      head = ''
      socket.write(all, () => {
        if (moment === 'idle' && !hasClosed && !isMarked) setTimeout(die, 5)
      })
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return {
    received,
    hasClosed: () => hasClosed,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  }
}

const CLOSES: readonly [how: string, close: (socket: Socket) => void][] = [
  ['closed', (socket) => socket.destroy()],
  ['ended', (socket) => socket.end()],
  ['reset', (socket) => socket.resetAndDestroy()],
]
const MOMENTS: readonly Moment[] = [
  'idle',
  'first bytes',
  'half',
  'whole',
  'interim',
  'answer head',
  'answer part',
]
/** The last is more than the buffers of two sockets take: the line closes before the last byte is written. */
const SIZES = [1, 200_000, 19_000_000]
const TOO_LONG_TO_BUFFER = 10_000_000

interface Row {
  readonly bytes: number
  readonly moment: Moment
  readonly close: (socket: Socket) => void
  readonly lines: number
  readonly mode: Mode
}

/** Makes a call over a connection that has served one before, beside the calls of another account. */
async function callOver(t: TestContext, { bytes, moment, close, lines, mode }: Row) {
  const first = await countingLine(t, moment, close)
  const second = await countingLine(t, undefined, close)
  const wants = { 'x-wants': mode.stream ? 'stream' : 'plain' }
  const gateway = await gatewayFor(t, {
    lines: [first, second].slice(0, lines).map(({ url }) => ({ url, headers: wants })),
    config: {
      accounts: [{ id: 'acme' }, { id: 'neighbour' }],
      keys: [
        { id: 'key_acme', account: 'acme', secret: 'sk-test-1' },
        { id: 'key_neighbour', account: 'neighbour', secret: NEIGHBOUR },
      ],
    },
  })
  const say = (content: string, headers: Record<string, string> = {}) =>
    exchange(gateway, mode, { messages: [{ role: 'user', content }], user: content.slice(0, 7) }, { headers })
  const neighbour = () => say('hello', { authorization: `Bearer ${NEIGHBOUR}` })
  assert.equal((await say('hi')).status, 200)
  // These leave a connection for each of the calls below.
  const before = moment === 'idle' ? [] : await Promise.all([neighbour(), neighbour(), neighbour()])
  if (moment === 'idle') await until(first.hasClosed)
  const call = say(MARK.padEnd(bytes, ' word'))
  const beside = await Promise.all([neighbour(), neighbour()])
  const got = await call
  const { routing } = await gateway.entry(got.requestId)
  return {
    got,
    others: [...before, ...beside],
    attempts: routing?.attempts ?? [],
    received: [first.received, second.received] as const,
  }
}

describe('a request that may have reached the upstream is not sent again', () => {
  for (const bytes of SIZES)
    for (const moment of MOMENTS)
      for (const [how, close] of CLOSES)
        for (const lines of [1, 2])
          for (const mode of [OPENAI, OPENAI_STREAM]) {
            const isLong = bytes > TOO_LONG_TO_BUFFER
            // Only with a long one does the connection die before all of it is written. It takes a second.
            if (isLong && (how !== 'reset' || lines === 1 || moment !== 'half')) continue
            // The size plays a part only until the whole request has come.
            if (bytes > 1 && !/bytes|half|whole/.test(moment)) continue
            if (mode.stream !== lines > 1) continue
            // A connection that dies while it is idle, or before it has taken the whole request, is replaced.
            const isReplaced = moment === 'idle' || (isLong && /bytes|half/.test(moment))
            const isCommitted = mode.stream && moment === 'answer part'
            const does = isReplaced ? 'is sent once more' : lines > 1 ? 'goes to the next line' : 'fails'
            it(`${bytes} bytes, ${how} at "${moment}", lines: ${lines}, ${modeName(mode)}: ${isCommitted ? 'breaks off' : does}`, async (t) => {
              const { got, others, attempts, received } = await callOver(t, {
                bytes,
                moment,
                close,
                lines,
                mode,
              })
              const [first, second] = received
              const isServed = isCommitted || isReplaced || lines > 1
              assert.equal(got.status, isServed ? 200 : 502, got.text)
              assert.ok(first.whole <= 1, `the line has it ${first.whole} times`)
              assert.equal(first.begun, isReplaced && moment !== 'idle' ? 2 : 1)
              if (isReplaced) assert.equal(first.whole, 1)
              const isMoved = lines > 1 && !isReplaced && !isCommitted
              assert.deepEqual([second.begun, second.whole], isMoved ? [1, 1] : [0, 0])
              const failed = ['line-0', 'upstream_error']
              assert.deepEqual(
                attempts.map(({ line, outcome }) => [line, outcome]),
                isReplaced
                  ? [['line-0', 'completed']]
                  : isMoved
                    ? [failed, ['line-1', 'completed']]
                    : [failed],
              )
              const saysSo = attempts.some(({ detail }) =>
                detail?.includes('sent again over a fresh connection'),
              )
              assert.equal(saysSo, isReplaced && moment !== 'idle')
              assert.deepEqual(
                others.map(({ status }) => status),
                others.map(() => 200),
              )
              assert.equal(first.others, others.length + 1, 'the other account has what it asked for, once')
            })
          }

  it('not even over a new connection that closes before the request is written', async (t) => {
    let served = false
    const server = await startRawServer((socket) => {
      if (served) socket.resetAndDestroy()
      else socket.write(ANSWER)
      served = true
    })
    t.after(() => server.close())
    const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
    await exchange(gateway)
    const long = [{ role: 'user', content: 'word '.repeat(3_800_000) }]
    assert.equal((await exchange(gateway, OPENAI, { messages: long })).status, 502)
    assert.equal(server.connections, 2)
  })
})

describe('an interim answer that was not requested', () => {
  const interim = (status: string) => `HTTP/1.1 ${status}\r\n\r\n`
  for (const heads of [
    ['100 Continue'],
    ['102 Processing'],
    ['103 Early Hints'],
    ['100 Continue', '100 Continue'],
    ['103 Early Hints', '100 Continue', '102 Processing'],
  ]) {
    for (const size of [1, 7, 10_000]) {
      it(`${heads.join(', ')} in pieces of ${size} is ignored`, async (t) => {
        const server = await startRawServer((socket) => {
          socket.setNoDelay(true)
          const bytes = heads.map(interim).join('') + ANSWER
          const write = (at: number): void => {
            if (at < bytes.length)
              socket.write(bytes.slice(at, at + size), () => setImmediate(write, at + size))
          }
          write(0)
        })
        t.after(() => server.close())
        const gateway = await gatewayFor(t, { lines: [{ url: server.url }] })
        for (let i = 0; i < 2; i++) assert.equal((await exchange(gateway)).status, 200)
        assert.equal(server.connections, 1)
      })
    }
  }
})

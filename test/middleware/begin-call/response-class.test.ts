import assert from 'node:assert/strict'
import { createServer, ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { responseClass } from '../../../lib/middleware/begin-call/response-class.ts'

/** One thing that a handler does to the head of a response; what it reads, or what it is refused, is its result. */
type Step = (res: ServerResponse) => unknown

const name = fc.constantFrom(
  'x-a',
  'X-A',
  'x-request-id',
  'Content-Type',
  'content-length',
  'set-cookie',
  'no name',
)
const value = fc.oneof(
  fc.constantFrom<string | number | string[]>('a', 'b', 'ü', '', 3, 'a\nb', '漢'),
  fc.constant<string[]>(['c=1', 'd=2']),
)
const headers = fc.dictionary(name, value, { maxKeys: 3 })
/** Node adds to the lists that it is given. */
const copyOf = <V>(given: V): V => structuredClone(given)

const told = (text: string, step: Step): Step => Object.assign(step, { toString: () => text })

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(name, value)
      .map(([n, v]) => told(`set ${n} ${v}`, (res) => void res.setHeader(n, copyOf(v)))),
  },
  fc
    .tuple(name, fc.constantFrom('e', 'f'))
    .map(([n, v]) => told(`append ${n}`, (res) => void res.appendHeader(n, v))),
  name.map((n) => told(`remove ${n}`, (res) => res.removeHeader(n))),
  name.map((n) => told(`get ${n}`, (res) => res.getHeader(n))),
  name.map((n) => told(`has ${n}`, (res) => res.hasHeader(n))),
  fc.constant(told('names', (res) => res.getHeaderNames())),
  fc.constant(told('all', (res) => ({ ...res.getHeaders() }))),
)
const head: fc.Arbitrary<Step> = fc.oneof(
  fc.constant(told('no head', () => {})),
  headers.map((given) =>
    told(`head ${JSON.stringify(given)}`, (res) => void res.writeHead(201, copyOf(given))),
  ),
  headers.map((given) => told('told head', (res) => void res.writeHead(202, 'Fine', copyOf(given)))),
  fc.constant(told('bare head', (res) => void res.writeHead(203))),
  headers.map((given) => told('no such status', (res) => void res.writeHead(1000, copyOf(given)))),
  headers.map((given) =>
    told('flat head', (res) => void res.writeHead(200, Object.entries(copyOf(given)).flat() as string[])),
  ),
)
/** What of the head is read once it is written. */
const look: Step = (res) => [
  res.getHeaderNames(),
  { ...res.getHeaders() },
  res.getHeader('x-a'),
  res.hasHeader('X-A'),
]

/** What the steps come to, and the bytes of the answer. */
async function answerOf(made: typeof ServerResponse, steps: readonly Step[]): Promise<unknown> {
  const results: unknown[] = []
  const server = createServer({ ServerResponse: made }, (_req, res) => {
    res.sendDate = false
    for (const each of steps) {
      try {
        results.push(each(res))
      } catch (error) {
        results.push((error as { code?: string }).code)
      }
    }
    res.end('body')
    results.push(res.statusCode, res.headersSent)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.end('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  const bytes: Buffer[] = []
  for await (const chunk of socket) bytes.push(chunk as Buffer)
  server.close()
  return [results, Buffer.concat(bytes).toString('latin1')]
}

describe('a response that keeps its headers as a list', () => {
  it('does and sends what one of Node does', { timeout: 60_000 }, async () => {
    const made = responseClass() as unknown as typeof ServerResponse
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 6 }),
        head,
        fc.array(step, { maxLength: 2 }),
        async (before, writing, behind) => {
          const steps = [...before, writing, look, ...behind, look]
          assert.deepEqual(await answerOf(made, steps), await answerOf(ServerResponse, steps))
        },
      ),
      { numRuns: 200 },
    )
  })
})

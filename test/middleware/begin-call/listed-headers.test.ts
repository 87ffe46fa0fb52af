import assert from 'node:assert/strict'
import { IncomingMessage, type OutgoingHttpHeader, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { it } from 'node:test'
import fc from 'fast-check'
import { listingResponse } from '../../../lib/middleware/begin-call/listed-headers.ts'

const Listing = listingResponse()

/** Names that are alike in their length, their first letter, or one in the middle; and the same in another case. */
const NAMES = [
  'x-ratelimit-limit-requests',
  'X-RateLimit-Limit-Requests',
  'x-ratelimit-reset-requests',
  'x-ratelimit-limit-tokenses',
  'x-ratelimit-Limit-tokenses',
  'Link',
  'link',
  'vary',
  'Vary',
  'set-cookie',
  'Set-Cookie',
  'x_1',
  'x!1',
] as const

type Given = string | string[] | number
const name = fc.constantFrom(...NAMES)
const text = fc.constantFrom('a', 'b', '', 'tab\there', 'é', '7')
const value = fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 2 }), fc.nat(9)) as fc.Arbitrary<Given>
const head = fc.oneof(
  fc.constant([]),
  fc.record({
    reason: fc.constantFrom(undefined, 'Fine'),
    list: fc.array(fc.tuple(name, value), { maxLength: 3 }),
  }),
  fc.record({
    reason: fc.constantFrom(undefined, 'Fine'),
    object: fc.dictionary(name, value, { maxKeys: 3 }),
  }),
)
const step = fc.oneof(
  fc.tuple(fc.constant('set'), name, value),
  fc.tuple(fc.constant('append'), name, fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 2 }))),
  fc.tuple(fc.constant('remove'), name, fc.constant('')),
)

function responseOf(Class: typeof ServerResponse): ServerResponse & { _header?: string } {
  const res = new Class(new IncomingMessage(new Socket()))
  res.sendDate = false
  return res
}

function take(res: ServerResponse, [what, of, given]: readonly [string, string, Given]): void {
  if (what === 'set') res.setHeader(of, given)
  else if (what === 'append') res.appendHeader(of, given as string)
  else res.removeHeader(of)
}

function begin(
  res: ServerResponse & { _header?: string },
  {
    reason,
    list,
    object,
  }: { reason?: string | undefined; list?: [string, Given][]; object?: Record<string, Given> },
): string | undefined {
  const headers = (list?.flat() ?? object) as OutgoingHttpHeader[] | undefined
  if (reason === undefined) res.writeHead(201, headers)
  else res.writeHead(201, reason, headers)
  // Which of two spellings of a name is sent is nobody's matter.
  return res._header?.toLowerCase()
}

it('headers in a list are told and sent as those of Node, in their order, in whatever way they were given', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), head, (steps, last) => {
      const [plain, listing] = [responseOf(ServerResponse), responseOf(Listing)]
      for (const each of steps) {
        // Node adds to lists that it was given.
        for (const res of [plain, listing]) take(res, structuredClone(each))
        assert.deepEqual(listing.getHeaderNames(), plain.getHeaderNames())
        assert.deepEqual(listing.getHeaders(), plain.getHeaders())
        for (const of of NAMES) {
          assert.equal(String(listing.getHeader(of)), String(plain.getHeader(of)), of)
          assert.equal(listing.hasHeader(of), plain.hasHeader(of), of)
        }
      }
      const [told, due] = [listing, plain].map((res) => begin(res, structuredClone(last) as object))
      assert.equal(told, due)
    }),
    { numRuns: 300 },
  )
})

it('what cannot be sent is refused where it is set, as Node refuses it', () => {
  for (const [of, given] of [
    ['bad name', 'a'],
    ['', 'a'],
    ['x', 'line\nbreak'],
    ['x', '\u20ac'],
    ['x', undefined],
    ['x', ['fine', 'not\rfine']],
  ] as const) {
    const errors = [ServerResponse, Listing].map((Class) => {
      try {
        responseOf(Class).setHeader(of, given as string)
        return 'taken'
      } catch (error) {
        return (error as NodeJS.ErrnoException).code
      }
    })
    assert.equal(errors[1], errors[0], `${of}: ${given}`)
  }
})

it('Node says that it is too late once the head is sent', () => {
  for (const before of [true, false]) {
    const res = responseOf(Listing)
    if (before) res.setHeader('x', 'y')
    res.writeHead(200)
    assert.throws(() => res.setHeader('a', 'b'), { code: 'ERR_HTTP_HEADERS_SENT' })
    assert.throws(() => res.removeHeader('x'), { code: 'ERR_HTTP_HEADERS_SENT' })
    assert.throws(() => res.writeHead(200), { code: 'ERR_HTTP_HEADERS_SENT' })
  }
})

it('what comes too late is refused in the words of Node', () => {
  const LATE: ((res: ServerResponse) => unknown)[] = [
    (res) => res.setHeader('a', 'b'),
    (res) => res.removeHeader('x'),
    (res) => res.writeHead(201),
    (res) => res.writeHead(201, { x: 'z' }),
    (res) => res.writeHead(201, 'Fine', ['x', 'z']),
  ]
  for (const [i, late] of LATE.entries()) {
    const [plain, listing] = [ServerResponse, Listing].map((Class) => {
      const res = responseOf(Class)
      res.setHeader('x', 'y')
      res.writeHead(200)
      try {
        late(res)
        return 'taken'
      } catch (error) {
        return (error as Error).message
      }
    })
    assert.equal(listing, plain, `${i}`)
    assert.notEqual(listing, 'taken')
  }
})

it('a head may leave out its reason, and give headers behind it', () => {
  for (const headers of [{ 'x-mode': 'a' }, ['x-mode', 'a'], undefined]) {
    const [plain, listing] = [ServerResponse, Listing].map((Class) => {
      const res = responseOf(Class)
      res.setHeader('x', 'y')
      res.writeHead(203, undefined, headers as OutgoingHttpHeader[])
      return res._header
    })
    assert.equal(listing, plain)
  }
})

it('a connection that the app wants closed, or a date that it removes, is so', () => {
  const [plain, listing] = [ServerResponse, Listing].map((Class) => {
    const res = new Class(new IncomingMessage(new Socket())) as ServerResponse & { _header?: string }
    res.setHeader('date', 'x')
    res.removeHeader('Date')
    res.setHeader('Connection', 'close')
    res.setHeader('Content-Length', 3)
    res.writeHead(200)
    return [res._header, res.shouldKeepAlive]
  })
  assert.deepEqual(listing, plain)
})

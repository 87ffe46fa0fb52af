import { METHODS } from 'node:http'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { chatBody, KEY, messageBody } from '../../support/gateway.ts'

/** A request as it goes out. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | undefined>
  readonly body: Buffer
  readonly chunked: boolean
}

/** Random edits of a valid body: a member or a list item replaced, wherever it stands. */
const mutated = fc
  .tuple(
    fc.constantFrom<() => object>(
      () => chatBody({ stream: false, tools: [{ type: 'function', function: { name: 'f' } }], n: 1 }),
      () => chatBody({ messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }], provider: {} }),
      () => messageBody({ system: [{ type: 'text', text: 'be brief' }], thinking: { type: 'enabled' } }),
      () => messageBody({ messages: [{ role: 'user', content: [{ type: 'tool_result', content: [] }] }] }),
    ),
    fc.array(fc.tuple(fc.nat(), fc.jsonValue({ maxDepth: 3 })), { maxLength: 4 }),
  )
  .map(([make, edits]) => {
    const body = make()
    for (const [at, value] of edits) replaceAt(body, at, value)
    return JSON.stringify(body)
  })

function replaceAt(root: object, at: number, value: unknown): void {
  const places: [holder: object, key: string][] = []
  const collect = (holder: object): void => {
    for (const [key, held] of Object.entries(holder)) {
      places.push([holder, key])
      if (typeof held === 'object' && held !== null) collect(held)
    }
  }
  collect(root)
  const place = places[at % places.length]
  if (place) Reflect.set(...place, value)
}

const body = fc.oneof(
  { weight: 5, arbitrary: mutated.map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.json({ maxDepth: 4 }).map((text) => Buffer.from(text)) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(mutated, fc.nat(), fc.string({ maxLength: 3, unit: 'binary' }))
      .map(([text, at, junk]) => {
        const cut = at % text.length
        return Buffer.from(text.slice(0, cut) + junk + text.slice(cut + junk.length))
      }),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.nat({ max: 100_000 }).map((size) => Buffer.alloc(size, '[')) },
  { weight: 1, arbitrary: fc.nat({ max: 100_000 }).map((size) => gzipSync(Buffer.alloc(size, ' '))) },
  { weight: 1, arbitrary: mutated.map((text) => gzipSync(text)) },
  { weight: 1, arbitrary: mutated.map((text) => brotliCompressSync(text)) },
)

const headerText = fc.string({ maxLength: 30, unit: fc.integer({ min: 0x20, max: 0xff }).map(latin1Char) })

function latin1Char(code: number): string {
  return code === 0x7f ? ' ' : String.fromCharCode(code)
}

/** A header that one request in `often` has. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>, often = 4): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: often - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const headers = fc
  .record({
    'content-type': fc.oneof(
      { weight: 8, arbitrary: fc.constant('application/json') },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          undefined,
          'application/json; charset="utf-8"',
          'application/json;charset=latin1',
          'APPLICATION/JSON ;',
          'application/vnd.api+json',
          'text/plain',
          'multipart/form-data; boundary=x',
          'application/json; charset=',
          ';',
          '',
        ),
      },
      { weight: 1, arbitrary: headerText },
    ),
    'content-encoding': rarely(
      fc.oneof(
        fc.constantFrom('gzip', 'br', 'deflate', 'zstd', 'identity', 'GZIP', 'gzip, br', 'compress', ''),
        headerText,
      ),
      5,
    ),
    authorization: fc.oneof(
      { weight: 20, arbitrary: fc.constant(`Bearer ${KEY}`) },
      {
        weight: 1,
        arbitrary: fc.constantFrom('Bearer', 'Basic eDp5', `bearer  ${KEY}`, 'Bearer eyJhbGciOiJ9.e30.x'),
      },
      { weight: 1, arbitrary: headerText },
    ),
    'x-gateway-provider': rarely(
      fc.oneof(
        fc.constantFrom(
          '{}',
          '[]',
          'null',
          '{"only":["line-0"]}',
          '{"only":0}',
          '{"max_price":{"prompt":"x"}}',
          '{',
        ),
        fc.json({ maxDepth: 2 }).map((text) => text.replace(/[^\x20-\x7e]/g, '?')),
        headerText,
      ),
      5,
    ),
    'x-api-key': rarely(headerText, 20),
    expect: rarely(fc.constant('100-continue')),
    'x-request-id': rarely(headerText),
    'idempotency-key': rarely(headerText),
    'anthropic-version': rarely(headerText),
    'anthropic-beta': rarely(headerText),
    'accept-encoding': rarely(headerText),
    'x-forwarded-for': rarely(headerText),
    accept: rarely(headerText),
    range: rarely(headerText),
    'if-none-match': rarely(fc.constantFrom('*', '"x"')),
    te: rarely(headerText),
    cookie: rarely(headerText),
  })
  .map((given) => Object.fromEntries(Object.entries(given).filter((entry) => entry[1] !== undefined)))

const segment = fc.oneof(
  fc.constantFrom(
    'v1',
    'models',
    'chat',
    'completions',
    'messages',
    'calls',
    'routing',
    '%',
    '%zz',
    '%00',
    '%2F',
    '..',
  ),
  fc.constantFrom(
    '%E0%A4%A',
    '%ff',
    '%2e%2e',
    '__proto__',
    'req_x',
    '',
    'api',
    'v3',
    '*',
    ':id',
    'a+b',
    ';x',
    '@',
  ),
)

const path = fc.oneof(
  { weight: 6, arbitrary: fc.constant('/v1/chat/completions') },
  { weight: 4, arbitrary: fc.constant('/v1/messages') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('/v1/chat/completions?x=%', '/V1/MESSAGES', '/v1/messages/', '/v1/models'),
  },
  { weight: 1, arbitrary: segment.map((text) => `/v1/models/${text}`) },
  { weight: 1, arbitrary: fc.webQueryParameters().map((query) => `/v1/calls?${query}&limit=%zz`) },
  { weight: 1, arbitrary: fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`) },
)

/** Requests of which some are valid, most nearly, and some are nothing of the kind. */
export const sent: fc.Arbitrary<Sent> = fc.record({
  method: fc.oneof(
    { weight: 8, arbitrary: fc.constant('POST') },
    { weight: 1, arbitrary: fc.constantFrom(...METHODS.filter((method) => method !== 'CONNECT')) },
  ),
  path,
  headers,
  body,
  chunked: fc.boolean(),
})

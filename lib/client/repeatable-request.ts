import { orAborted } from './waits.ts'

/** What `fetch` is, in a browser as in Node. */
export type Fetch = typeof globalThis.fetch
type FetchInput = Parameters<Fetch>[0]
type FetchInit = NonNullable<Parameters<Fetch>[1]>

/** A request that can be sent several times. */
export interface RepeatableRequest {
  readonly method: string
  /** Absolute. */
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal | undefined
  /** False of a body that can be read once only: it is sent once. */
  readonly hasLastingBody: boolean
  send(fetch: Fetch): Promise<Response>
}

/** What {@link repeatableRequest} decides by. */
export interface RepeatableRequestOptions {
  readonly bufferStreams: boolean
  readonly newIdempotencyKey: () => string
}

/**
 * Makes a request out of what `fetch` was given: its body in a form that can be sent again, byte for byte the same, and an
 * `Idempotency-Key` on a POST that has none, the same in every attempt.
 *
 * @throws TypeError as `fetch` does, when there can be no such request.
 */
export async function repeatableRequest(
  input: FetchInput,
  init: FetchInit = {},
  { bufferStreams, newIdempotencyKey }: RepeatableRequestOptions,
): Promise<RepeatableRequest> {
  const given = input instanceof Request ? input : undefined
  const method = (init.method ?? given?.method ?? 'GET').toUpperCase()
  const { url } = given ?? new Request(String(input))
  const headers = new Headers(init.headers ?? given?.headers)
  const signal = init.signal ?? given?.signal ?? undefined
  if (method === 'POST' && !headers.has('idempotency-key'))
    headers.set('idempotency-key', newIdempotencyKey())

  // Whether a Request was made from a stream cannot be seen; what gateways take fits into memory.
  const body = init.body ?? (given?.body ? given : undefined)
  const isStream = body !== undefined && body !== given && !isWhole(body)
  const attempt: FetchInit = { ...init, method, headers }
  if (body !== undefined && (!isStream || bufferStreams))
    attempt.body = await orAborted(bytesOf(body, headers), signal)
  return {
    method,
    url,
    headers,
    signal,
    hasLastingBody: !isStream || bufferStreams,
    send: (fetch) => fetch(input, attempt),
  }
}

type Body = NonNullable<FetchInit['body']>

/** Whether all of a body is there, and not still to be read. */
function isWhole(body: Body | Request): boolean {
  return (
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams
  )
}

/** A form is written out once, as its boundary would be another each time and so its content under the same key. */
async function bytesOf(body: Body | Request, headers: Headers): Promise<string | ArrayBuffer> {
  if (typeof body === 'string') return body
  const packed = body instanceof Request ? body : new Response(body)
  const type = packed.headers.get('content-type')
  const bytes = await packed.arrayBuffer()
  if (type !== null && !headers.has('content-type')) headers.set('content-type', type)
  return bytes
}

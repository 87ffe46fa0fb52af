import { orAborted } from './waits.ts'

/** The type of `fetch`, in browsers and in Node. */
export type Fetch = typeof globalThis.fetch
type FetchInput = Parameters<Fetch>[0]
type FetchInit = NonNullable<Parameters<Fetch>[1]>

/** A request that can be sent several times. */
export interface RepeatableRequest {
  readonly method: string
  /** An absolute URL. */
  readonly url: string
  readonly headers: Headers
  readonly signal: AbortSignal | undefined
  /** False if the body can be read only once; then the request is sent only once. */
  readonly isRepeatable: boolean
  send(fetch: Fetch): Promise<Response>
}

export interface RepeatableRequestOptions {
  readonly bufferStreams: boolean
  readonly newIdempotencyKey: () => string
}

/**
 * Makes a request from the arguments of `fetch`. Its body can be sent again, byte for byte the same. A POST without an
 * `Idempotency-Key` gets one, the same in all attempts.
 *
 * @throws TypeError as `fetch` does, if the arguments are not valid.
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

  // A Request does not show whether it was made from a stream. Bodies that a gateway accepts fit into memory.
  const body = init.body ?? (given?.body ? given : undefined)
  const isStream = body !== undefined && body !== given && !isInMemory(body)
  const attempt: FetchInit = { ...init, method, headers }
  if (body !== undefined && (!isStream || bufferStreams))
    attempt.body = await orAborted(bytesOf(body, headers), signal)
  return {
    method,
    url,
    headers,
    signal,
    isRepeatable: !isStream || bufferStreams,
    send: (fetch) => fetch(input, attempt),
  }
}

type Body = NonNullable<FetchInit['body']>

/** Whether a body is in memory, not a stream. */
function isInMemory(body: Body | Request): boolean {
  return (
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof Blob ||
    body instanceof FormData ||
    body instanceof URLSearchParams
  )
}

/** Returns the bytes of a body. A form is encoded once: with a new boundary, its content would differ under the same key. */
async function bytesOf(body: Body | Request, headers: Headers): Promise<string | ArrayBuffer> {
  if (typeof body === 'string') return body
  const source = body instanceof Request ? body : new Response(body)
  const type = source.headers.get('content-type')
  const bytes = await source.arrayBuffer()
  if (type !== null && !headers.has('content-type')) headers.set('content-type', type)
  return bytes
}

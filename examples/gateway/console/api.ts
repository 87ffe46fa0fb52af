import type { Session } from './session.ts'

/** Thrown if the gateway refused a request or could not be reached. */
export class ApiFault extends Error {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number
  readonly code: string | null
  readonly requestId: string | null
  /** How long to wait before the request is sent again; null if the gateway did not say. */
  retryAfterMs: number | null = null

  constructor(message: string, status: number, code: string | null, requestId: string | null) {
    super(message)
    this.name = 'ApiFault'
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

export interface Page<T> {
  readonly data: readonly T[]
  readonly next_cursor: string | null
}

/** The members of a query. Undefined and empty ones are left out. */
export type Query = Readonly<Record<string, string | number | undefined>>

/** Sends requests to the gateway with the session's credential. Methods reject with {@link ApiFault}. */
export class Api {
  readonly #credential: Readonly<Record<string, string>>
  readonly #onSignedOut: (fault: ApiFault) => void

  /** @param onSignedOut called when the credential is no longer valid. */
  constructor({ secret }: Pick<Session, 'secret'>, onSignedOut: (fault: ApiFault) => void = () => {}) {
    // The gateway takes the cookie from requests with this header only, which pages of other origins cannot send.
    this.#credential = secret === null ? { 'x-gateway-console': '1' } : { authorization: `Bearer ${secret}` }
    this.#onSignedOut = onSignedOut
  }

  /** @param path relative to the page, such as `v1/calls`, because the page can be below a proxy's prefix. */
  get<T>(path: string, query: Query = {}, signal: AbortSignal | null = null): Promise<T> {
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    )
    const search = new URLSearchParams(given).toString()
    return this.#ask<T>('GET', search === '' ? path : `${path}?${search}`, undefined, signal)
  }

  send<T>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<T> {
    return this.#ask<T>(method, path, body, null)
  }

  /** The type of the answer is not checked; the endpoint's README describes it. */
  async #ask<T>(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal | null,
  ): Promise<T> {
    const response = await fetch(path, {
      method,
      headers: {
        ...this.#credential,
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body ? JSON.stringify(body) : null,
      signal,
      cache: 'no-store',
      credentials: 'authorization' in this.#credential ? 'omit' : 'same-origin',
    }).catch((error: unknown) => {
      if (signal?.aborted) throw error
      throw new ApiFault('The gateway cannot be reached. Is it running?', 0, null, null)
    })
    const text = await response.text()
    if (!response.ok) {
      const fault = faultIn(response, text)
      if (fault.status === 401) this.#onSignedOut(fault)
      throw fault
    }
    const answer: T = text === '' ? undefined : JSON.parse(text)
    return answer
  }
}

function faultIn(response: Response, text: string): ApiFault {
  const requestId = response.headers.get('x-request-id')
  const { message, code } = errorIn(text)
  const words = typeof message === 'string' ? message : `The gateway answered ${response.status}.`
  const fault = new ApiFault(words, response.status, typeof code === 'string' ? code : null, requestId)
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  if (Number.isFinite(seconds)) fault.retryAfterMs = seconds * 1000
  return fault
}

function errorIn(text: string): { message?: unknown; code?: unknown } {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && 'error' in body) {
      const { error } = body
      if (typeof error === 'object' && error !== null) return error
    }
  } catch {
    // The body is not the gateway's, such as a proxy's page. Only the status is known.
  }
  return {}
}

import assert from 'node:assert/strict'

/** An error body of either protocol. */
export interface ErrorEnvelope {
  /** Only in the Anthropic-style envelope. */
  readonly type?: string
  readonly error: {
    readonly message: string
    readonly type: string
    /** Not in the Anthropic-style envelope, as the members below. */
    readonly code?: string
    readonly param?: string
    readonly details?: { readonly original_request_id?: string }
  }
  readonly request_id: string
}

/** The members of a completion that tests read. */
export interface ChatAnswer {
  readonly object: string
  readonly choices: readonly [{ readonly message: { readonly content: string } }]
}

/** The members of a message that tests read. */
export interface MessageAnswer {
  readonly content: readonly [{ readonly text: string }]
}

/** The members of an event, in a stream of either protocol, that tests read. */
export interface StreamedEvent extends Partial<ErrorEnvelope> {
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[]
  readonly delta?: { readonly text?: string }
}

/** The JSON body of an answer, taken for what the test says it is. */
export async function jsonOf<T>(response: Response): Promise<T> {
  return (await response.json()) as T
}

/** The error body of an answer; fails when it has another. */
export async function envelopeOf(response: Response): Promise<ErrorEnvelope> {
  return envelopeIn(await response.json())
}

/** A body as the error that it is; fails when it is none. */
export function envelopeIn(body: unknown): ErrorEnvelope {
  assert.ok(isEnvelope(body), `an error body, not ${JSON.stringify(body)}`)
  return body
}

/** Whether a body is an error of the gateway; what stands in it is for the test to judge. */
export function isEnvelope(body: unknown): body is ErrorEnvelope {
  if (typeof body !== 'object' || body === null || !('error' in body)) return false
  return typeof body.error === 'object' && body.error !== null
}

import assert from 'node:assert/strict'
import { envelopeIn } from '../../support/answer-bodies.ts'

/** The parts of a refusal that a caller reads. */
export interface Refusal {
  readonly status: number
  readonly code: string | undefined
  readonly type: string
  readonly message: string
  readonly param: string | undefined
}

/** Reads a refusal, checking on the way that it is a whole envelope of its protocol (spec 2.1, 2.2). */
export async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text()
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/, text)
  return checkEnvelope(response.status, response.headers.get('x-request-id'), text)
}

/** The same for an answer whose body was read by hand. */
export function checkEnvelope(status: number, requestId: unknown, text: string): Refusal {
  const body = envelopeIn(JSON.parse(text))
  assert.ok(status >= 400, `a refusal, not ${status}: ${text}`)
  assert.match(String(requestId), /^req_/)
  assert.equal(body.request_id, requestId)
  assert.equal(typeof body.error.message, 'string')
  assert.equal(typeof body.error.type, 'string')
  assert.doesNotMatch(text, /node_modules|\.ts:\d|^\s+at /m, 'no stack')
  if (body.type === 'error') assert.deepEqual(Object.keys(body.error).sort(), ['message', 'type'])
  else assert.equal(typeof body.error.code, 'string')
  const { code, type, message, param } = body.error
  return { status, code, type, message, param }
}

import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { type OpenCall, openCall } from '../../../../lib/core/call/index.ts'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { budgetOf } from '../../../../lib/core/memory/index.ts'
import { type CheckedBody, checkBody } from '../../../../lib/middleware/forward/body-checks/body.ts'
import { recordingLogger } from '../../../support/app-server.ts'

/** A request whose body a test sends. */
export type SentRequest = IncomingMessage & PassThrough

/** Returns one with these headers, of which nothing has come. */
export function sentRequest(headers: Record<string, string>, closesItself = true): SentRequest {
  const options = { highWaterMark: 1024 * 1024, autoDestroy: closesItself }
  const req = Object.assign(new PassThrough(options), { headers })
  return req as unknown as SentRequest
}

/** Returns one whose body has come whole, in these pieces. */
export function wholeRequest(headers: Record<string, string>, ...pieces: (string | Buffer)[]): SentRequest {
  const req = sentRequest({ 'transfer-encoding': 'chunked', ...headers })
  for (const piece of pieces) req.write(piece)
  req.end()
  return req
}

/** Returns a call of a key. */
export function callOfKey(keyId = 'key_acme'): OpenCall {
  const req = new IncomingMessage(new Socket())
  const call = openCall(req, new ServerResponse(req), { logger: recordingLogger() })
  call.principal = { accountId: 'acme', keyId } as typeof call.principal & {}
  return call
}

/** The largest body that is checked. */
export const LIMIT = 100_000
export const RULES = {
  bodyLimitBytes: LIMIT,
  budget: budgetOf('test', LIMIT),
  ownedOnly: true,
  takesRaw: false,
}
/** A body that names a file, and what it names. */
export const NAMING = '{"file_id":"f"}'
export const NAMED = [['file', 'f', 'file_id']]

export const check = (
  req: SentRequest,
  { signal = new AbortController().signal, takesRaw = false } = {},
): Promise<CheckedBody> => checkBody(callOfKey(), req, { ...RULES, takesRaw }, signal)
export const typed = (type: string | undefined, ...pieces: (string | Buffer)[]): SentRequest =>
  wholeRequest(type === undefined ? {} : { 'content-type': type }, ...pieces)
export const namedIn = ({ references }: CheckedBody) =>
  references.map(({ kind, id, place }) => [kind, id, place()])

/** The body passes as it comes: nothing of it was looked at. */
export function assertUnread(checked: CheckedBody, req: SentRequest, what?: string): void {
  assert.equal(checked.source, req, what)
  assert.deepEqual(
    [checked.references, checked.watch, checked.bytes, checked.json],
    [[], undefined, 0, undefined],
    what,
  )
}

export async function refusalOf(
  req: SentRequest,
  options?: { signal?: AbortSignal; takesRaw?: boolean },
): Promise<GatewayError> {
  const error = await check(req, options).then(
    () => assert.fail('it passes'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof GatewayError, String(error))
  return error
}

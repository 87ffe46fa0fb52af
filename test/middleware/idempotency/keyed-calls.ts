import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { openCall } from '../../../lib/core/call/index.ts'
import { AnswerBody } from '../../../lib/middleware/idempotency/answer-body.ts'
import { HeldClaim, momentNow } from '../../../lib/middleware/idempotency/held-claim.ts'
import { KeyedCall } from '../../../lib/middleware/idempotency/keyed-call.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { type Kept, scriptedKeeper } from './scripted-keeper.ts'

export const HANDLER_MS = 1000
export const USAGE = {
  inputTokens: 1,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 1,
  source: 'measured',
} as const

interface Keyed {
  completesHere?: boolean
  kept?: Kept
  maySend?: boolean
}

/** A call that holds a claim, and what became of that. */
export function keyedCall({ completesHere = true, kept = true, maySend = true }: Keyed = {}) {
  const req = new IncomingMessage(new Socket())
  const res = new ServerResponse(req)
  const call = openCall(req, res, { logger: recordingLogger() })
  const { keeper, log, may } = scriptedKeeper(kept, maySend)
  const held = new HeldClaim({ id: 'k', owner: call.id }, 500, momentNow())
  const body = new AnswerBody(100)
  const trace = { responseBody: null, claim: null, partsApart: 0, keepApart() {} } as unknown as NonNullable<
    typeof call.idempotency
  >
  const keyed = new KeyedCall(call, trace, held, body, res, { keeper, completesHere, handlerMs: HANDLER_MS })
  assert.equal(trace.claim, held)
  keyed.begin()
  return {
    call,
    res,
    keyed,
    held,
    body,
    trace,
    log,
    may,
    close(whole = false) {
      Object.defineProperty(res, 'writableFinished', { value: whole })
      res.emit('close')
    },
  }
}

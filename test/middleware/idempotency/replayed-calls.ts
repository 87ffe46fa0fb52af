import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { openCall } from '../../../lib/core/call/index.ts'
import { HeldClaim, momentNow } from '../../../lib/middleware/idempotency/held-claim.ts'
import { ReplayedCall } from '../../../lib/middleware/idempotency/replayed-call.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { type Kept, scriptedKeeper } from './scripted-keeper.ts'

export const HANDLER_MS = 1000

interface Replayed {
  kept?: Kept
  keepWhen?: (status: number) => boolean
}

/** A call that holds a claim and whose answer is given again, and what became of the claim. */
export function replayedCall({ kept = true, keepWhen = () => true }: Replayed = {}) {
  const req = new IncomingMessage(new Socket())
  const res = new ServerResponse(req)
  const logger = recordingLogger()
  const call = openCall(req, res, { logger })
  const { keeper, log, may } = scriptedKeeper(kept)
  call.onSettle(async () => void log.push('settle'))
  const held = new HeldClaim({ id: 'k', owner: call.id }, 500, momentNow())
  const trace = { claim: null } as unknown as NonNullable<typeof call.idempotency>
  const options = { keeper, handlerMs: HANDLER_MS, keepWhen, logger }
  const replayed = new ReplayedCall(call, trace, held, 100, res, options)
  assert.equal(trace.claim, held)
  replayed.begin()
  return {
    ...{ call, res, replayed, held, log, may, logger },
    sendHead: () => Object.defineProperty(res, 'headersSent', { value: true, configurable: true }),
    close() {
      Object.defineProperty(res, 'writableFinished', { value: false })
      res.emit('close')
    },
  }
}

import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import {
  type AnswerBytes,
  type CallEnding,
  type OpenCall,
  openCall,
  type RunningClaim,
} from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import type { Bill, Reservation, SettleOutcome } from '../../../lib/ledger/pool/reservation.ts'
import { BilledCall } from '../../../lib/middleware/billing-guard/billed-call.ts'
import { recordingLogger } from '../../support/app-server.ts'

export const HANDLER_MS = 1000
export const ENDING: CallEnding = {
  outcome: { status: 200, errorCode: null, finish: 'completed' },
  unsent: null,
}
export const USAGE = {
  inputTokens: 2,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 3,
  source: 'measured',
} as const
const SERVED = { line: 'line-0', price: { ...FREE, inputPerMillion: 1_000_000n, perRequest: 5n } }
/** 2 tokens of input, and the request. */
export const COST = 7n

interface Held {
  amount?: bigint
  /** The most that can be charged. */
  most?: bigint
  settlesRecords?: boolean
  onStoreError?: 'hold' | 'deliver'
  outcome?: SettleOutcome | Promise<SettleOutcome>
  revoked?: 'queued' | 'dropped'
  claim?: Partial<RunningClaim> | null
  /** Keeps the answer apart from the entry. */
  keepApart?: NonNullable<OpenCall['idempotency']>['keepApart']
}

/** A call whose money is held, and what became of the money. */
export function billedCall({
  amount = 9n,
  outcome = 'confirmed',
  revoked = 'queued',
  claim = null,
  keepApart = () => undefined,
  ...held
}: Held = {}) {
  const req = new IncomingMessage(new Socket())
  const res = new ServerResponse(req)
  const logger = recordingLogger()
  const call = openCall(req, res, { logger })
  const log: string[] = []
  const bills: Bill[] = []
  const entries: unknown[] = []
  const replaced: Bill[] = []
  const reservation = {
    amount,
    settlesRecords: false,
    onStoreError: 'hold',
    ...held,
    settle(bill: Bill) {
      log.push(`settle ${bill.amount}`)
      bills.push(bill)
      return outcome
    },
    revoke(entry: (() => unknown) | null) {
      log.push('revoke')
      entries.push(entry?.() ?? null)
      return revoked
    },
    release: () => void log.push('release'),
    replaceBill: (bill: Bill) => void replaced.push(bill),
  } as unknown as Reservation
  const running = claim && { id: 'k', owner: 'o', keepMs: 500, state: 'running' as const, ...claim }
  if (running) {
    call.idempotency = {
      key: 'k',
      claim: running,
      completedByLedger: true,
      discard: () => void log.push('discard'),
      bodyWith: () => null,
      bytesWith: (unsent: AnswerBytes | null) => unsent?.length ?? 0,
      keepApart,
    } as unknown as NonNullable<typeof call.idempotency>
  }
  const billed = new BilledCall(call, res, reservation, { handlerMs: HANDLER_MS })
  return {
    call,
    res,
    billed,
    log,
    bills,
    entries,
    /** The bills that say the same without the call. */
    replaced,
    logged: logger.lines,
    claim: running as RunningClaim | null,
    used() {
      call.usage = USAGE
      call.servedBy = SERVED
    },
    /** The caller has left, or has the whole answer. */
    close(whole = false) {
      Object.defineProperty(res, 'writableFinished', { value: whole })
      res.emit('close')
    },
  }
}

/** From here on some of the answer counts as sent. */
export const sent = (res: ServerResponse) => Object.defineProperty(res, 'headersSent', { value: true })

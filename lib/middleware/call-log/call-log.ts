import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallLogEntry, callOf, entryOf } from '../../core/call/index.ts'

/** Options of {@link callLog}. */
export interface CallLogOptions {
  /** Takes the entries: a `CallLogWriter`, or anything whose `add` neither throws nor waits. */
  writer: { add(entry: CallLogEntry): void }
  /**
   * Who writes the entries of calls that are charged: the `writer`, or the `ledger` in the transaction of the charge.
   * Defaults to `writer`.
   */
  settledBy?: 'writer' | 'ledger'
}

/**
 * Writes an entry for every call when it ends, refused and broken ones included. Mount it right behind
 * `beginCall`: what is registered first runs last, so that the entry knows what all others gave back.
 *
 * @throws TypeError at construction without a writer.
 * @example
 * app.use(beginCall(), callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }))
 */
export function callLog(options: CallLogOptions): RequestHandler {
  const { writer, settledBy = 'writer' } = options
  if (typeof writer?.add !== 'function') {
    throw new TypeError('callLog: "writer" must have an add method, such as new CallLogWriter({ store })')
  }
  const write = (call: Call): void => {
    if (call.entryBy !== 'written') writer.add(entryOf(call))
  }
  return function callLog(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    call.entryBy = settledBy
    call.onEnd('call log', write)
    next()
  }
}

import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type CallLogEntry, callOf, entryOf, type OpenCall } from '../../core/call/index.ts'
import { anObjectWith, checkOptions, type OptionRules, oneOf, required } from '../../core/options/index.ts'

/** Options of {@link callLog}. */
export interface CallLogOptions {
  /** Receives the entries: a `CallLogWriter`, or an object whose `add` neither throws nor waits. */
  writer: { add(entry: CallLogEntry): void }
  /** The writer of the entries of charged calls: `writer`, or the `ledger` with the charge. Defaults to `writer`. */
  settledBy?: 'writer' | 'ledger'
}

const RULES: OptionRules<CallLogOptions> = {
  writer: required(anObjectWith('an object with an add method, such as new CallLogWriter({ store })', 'add')),
  settledBy: oneOf('writer', 'ledger'),
}

/**
 * Writes an entry for every call when it ends, including refused and broken ones. Mount it right after `beginCall`:
 * end handlers run in reverse order, so this one then sees what all others released.
 *
 * @throws TypeError at construction without a writer.
 * @example
 * app.use(beginCall(), callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }))
 */
export function callLog(options: CallLogOptions): RequestHandler {
  checkOptions('callLog', options, RULES)
  const { writer, settledBy = 'writer' } = options
  const write = (call: OpenCall): void => {
    if (call.entryBy !== 'written') writer.add(entryOf(call))
  }
  return function callLog(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    call.entryBy = settledBy
    call.onEnd('call log', write)
    next()
  }
}

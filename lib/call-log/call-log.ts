import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from '../call/index.ts'
import { type CallLogEntry, entryOf } from './entry.ts'

/** Options of {@link callLog}. */
export interface CallLogOptions {
  /** Takes the entries: a `CallLogWriter`, or anything whose `add` neither throws nor waits. */
  writer: { add(entry: CallLogEntry): void }
}

/**
 * Writes an entry for every call when it ends, refused and broken ones included (spec 7.4). Mount it right behind
 * `beginCall`: what is registered first runs last, so that the entry knows what all others gave back.
 *
 * @throws TypeError at construction without a writer.
 * @example
 * app.use(beginCall(), callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }))
 */
export function callLog(options: CallLogOptions): RequestHandler {
  const { writer } = options
  if (typeof writer?.add !== 'function') {
    throw new TypeError('callLog: "writer" must have an add method, such as new CallLogWriter({ store })')
  }
  return function callLog(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    call.onEnd('call log', () => writer.add(entryOf(call)))
    next()
  }
}

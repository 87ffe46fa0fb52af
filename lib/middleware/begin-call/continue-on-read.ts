import type { IncomingMessage, ServerResponse } from 'node:http'

const unread = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Answers `Expect: 100-continue` when the body is first read, whoever reads it, and not before. If the response begins
 * earlier, no 100 is sent, and Node closes the connection behind the response: nobody knows whether the body still comes.
 */
export function continueOnRead(req: IncomingMessage, res: ServerResponse): void {
  unread.set(req, res)
  req._read = readContinued
}

/** One function for all requests, which holds none of them. */
function readContinued(this: IncomingMessage, size: number): void {
  const res = unread.get(this)
  // From here on the request has the method of its class again.
  Reflect.deleteProperty(this, '_read')
  if (res && !res.headersSent) res.writeContinue()
  this._read(size)
}

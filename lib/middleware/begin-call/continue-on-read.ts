import type { IncomingMessage, ServerResponse } from 'node:http'

/** The events of a readable stream to which its readers listen: pipes, iterators and parsers use them, too. */
const READING: ReadonlySet<unknown> = new Set(['data', 'readable'])

/**
 * Answers `Expect: 100-continue` when the body is first read, that is when the first listener for it is attached, and not
 * before. If the response begins earlier, no 100 is sent, and Node closes the connection after the response, because it does
 * not know whether the body will still come.
 */
export function continueOnRead(req: IncomingMessage, res: ServerResponse): void {
  const onListener = (event: unknown): void => {
    if (!READING.has(event)) return
    req.off('newListener', onListener)
    if (!res.headersSent) res.writeContinue()
  }
  req.on('newListener', onListener)
}

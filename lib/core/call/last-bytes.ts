import type { ServerResponse } from 'node:http'

type EndArguments = Parameters<ServerResponse['end']>

/** The size of what is called the last bytes of an answer: what may be unsent when its slot is given back. */
export const LAST_BYTES = 16 * 1024

const NONE = Buffer.alloc(0)

/** Returns the bytes that a response's `write` or `end` was given. */
export function bytesOf([chunk, encoding]: readonly unknown[]): Uint8Array {
  if (typeof chunk === 'string')
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return chunk instanceof Uint8Array ? chunk : NONE
}

/**
 * Sends what `end` was given but for the last bytes.
 *
 * @returns what is left to give to `end`, and a promise that resolves once the caller has taken nearly everything else, or
 * has left; undefined if it has.
 */
export function sendMost(
  res: ServerResponse,
  write: ServerResponse['write'],
  given: EndArguments,
): { rest: EndArguments; flowing: Promise<void> | undefined } {
  let rest = given
  const bytes = bytesOf(given)
  if (bytes.byteLength > LAST_BYTES) {
    if (!res.headersSent && !res.hasHeader('transfer-encoding')) declareLength(res, bytes.byteLength)
    write.call(res, bytes.subarray(0, -LAST_BYTES), 'utf8')
    const callback = given.findLast((each) => typeof each === 'function')
    rest = [bytes.subarray(-LAST_BYTES), callback] as unknown as EndArguments
  }
  return { rest, flowing: res.writableNeedDrain ? drained(res) : undefined }
}

/** Without a length, an answer that begins before its end is sent in chunks. */
function declareLength(res: ServerResponse, length: number): void {
  const bodyless = res.statusCode < 200 || res.statusCode === 204 || res.statusCode === 304
  if (!bodyless && !res.hasHeader('content-length')) res.setHeader('content-length', length)
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.on('drain', done).on('close', done)
    if (res.destroyed) done()
  })
}

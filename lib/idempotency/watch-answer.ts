import type { ServerResponse } from 'node:http'
import type { NextFunction } from 'express'
import type { AnswerBody } from './answer-body.ts'

type EndArguments = Parameters<ServerResponse['end']>

/**
 * Keeps what is sent, and lets `beforeEnd` hold the end of the answer back.
 *
 * @param beforeEnd what the end has to wait for; what it throws, or rejects with, is answered instead.
 * @param next takes that error.
 */
export function watchAnswer(
  res: ServerResponse,
  body: AnswerBody,
  beforeEnd: () => Promise<void> | undefined,
  next: NextFunction,
): void {
  const { write, end } = res
  let heldBack: EndArguments | undefined
  /** Another answer than the kept one follows: an error about it. */
  let replaced = false

  const replace = (error: unknown): void => {
    heldBack = undefined
    replaced = true
    next(error)
  }

  res.write = function watchedWrite(this: ServerResponse, ...given: Parameters<ServerResponse['write']>) {
    if (!replaced) body.addSent(given[0], given[1])
    return write.apply(this, given)
  } as ServerResponse['write']

  res.end = function watchedEnd(this: ServerResponse, ...given: EndArguments) {
    if (replaced) return end.apply(res, given)
    body.addSent(given[0], given[1])
    if (heldBack) {
      // The handler has failed behind its answer: what it, or the error handler, says last is said.
      heldBack = given
      return res
    }
    let waiting: Promise<void> | undefined
    try {
      waiting = beforeEnd()
    } catch (error) {
      replace(error)
      return res
    }
    if (!waiting) return end.apply(res, given)
    heldBack = given
    waiting.then(() => end.apply(res, heldBack as EndArguments), replace)
    return res
  } as ServerResponse['end']
}

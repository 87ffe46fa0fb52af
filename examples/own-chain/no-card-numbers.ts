import type { RequestHandler } from 'express'
import { callOf } from 'express-model-gateway'

/** Thirteen to nineteen digits, apart by at most a space or a dash, such as `4111 1111 1111 1111`. */
const CARD_NUMBER = /\b\d(?:[ -]?\d){12,18}\b/

/**
 * Refuses a request with a card number in it before it leaves the house. Behind `readRequest`, which has read the body and
 * knows that it is one; before the limits, so that a refusal uses none up.
 */
export function noCardNumbers(): RequestHandler {
  return function noCardNumbers(req, _res, next) {
    const call = callOf(req)
    const said = JSON.stringify(call.request?.body.json.messages ?? [])
    if (CARD_NUMBER.test(said)) {
      // The text is the caller's to read; the number stays out of it, and out of every log.
      next(call.refuse('content_filtered', { message: 'There is a card number in this request.' }))
      return
    }
    next()
  }
}

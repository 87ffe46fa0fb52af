import type { RequestHandler } from 'express'
import { callOf } from 'express-model-gateway'

/** Matches 13 to 19 digits, separated by at most a space or a dash, such as `4111 1111 1111 1111`. */
const CARD_NUMBER = /\b\d(?:[ -]?\d){12,18}\b/

/**
 * Refuses requests that contain a card number. Mount it behind `readRequest`, which reads the body, and before the limits,
 * so that a refusal does not count.
 */
export function noCardNumbers(): RequestHandler {
  return function noCardNumbers(req, _res, next) {
    const call = callOf(req)
    const said = JSON.stringify(call.request?.body.json.messages ?? [])
    if (CARD_NUMBER.test(said)) {
      // The message does not repeat the number, so that no log holds it.
      next(call.refuse('content_filtered', { message: 'There is a card number in this request.' }))
      return
    }
    next()
  }
}

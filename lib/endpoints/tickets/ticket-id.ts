import { isRequestId, newRequestId } from '../../core/call/index.ts'

const PREFIX = 'tkt_'
const REQUEST_PREFIX = 'req_'

/** Returns a new ticket id. It has the form of a request id, so that ids sort by time. */
export function newTicketId(now: number): string {
  return PREFIX + newRequestId(now).slice(REQUEST_PREFIX.length)
}

export function isTicketId(text: string): boolean {
  return text.startsWith(PREFIX) && isRequestId(REQUEST_PREFIX + text.slice(PREFIX.length))
}

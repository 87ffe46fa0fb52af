/** The reasons why a thread of Anthropic's cannot go on: the values of `error.details.error_code`. */
export const THREAD_FAULTS = [
  'thread_not_found',
  'thread_already_continued',
  'thread_continue_in_flight',
  'thread_unsupported_request',
] as const

/**
 * Returns the `details` by which Anthropic's SDK sends the whole conversation again by itself: in a new thread, or in
 * none where threads are unsupported.
 */
export function threadDetails(fault: (typeof THREAD_FAULTS)[number]): Readonly<Record<string, unknown>> {
  return fault === 'thread_unsupported_request'
    ? { error_code: fault, unsupported: ['thread'] }
    : { error_code: fault }
}

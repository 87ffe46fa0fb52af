import assert from 'node:assert/strict'
import { it } from 'node:test'
import { THREAD_FAULTS, threadDetails } from '../../../lib/core/errors/thread-details.ts'

it('the details of a failed thread are those that the Anthropic SDK knows', () => {
  assert.deepEqual(THREAD_FAULTS.map(threadDetails), [
    { error_code: 'thread_not_found' },
    { error_code: 'thread_already_continued' },
    { error_code: 'thread_continue_in_flight' },
    { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  ])
})

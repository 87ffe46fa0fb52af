import type { Call } from './calls.ts'

/** A ticket about a call, with its reply. */
export interface Ticket {
  readonly id: string
  readonly account: string
  readonly key: string | null
  readonly request_id: string
  readonly message: string
  readonly status: 'open' | 'answered' | 'closed'
  readonly reply: string | null
  readonly created_at: string
  readonly updated_at: string
  /** For operators: the call; null if the log no longer has it. */
  readonly call?: Call | null
}

import type { Call } from './calls.ts'

/** A question about a call, and what was answered. */
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
  /** For operators: the call that it is about; null once the log has forgotten it. */
  readonly call?: Call | null
}

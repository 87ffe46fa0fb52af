import type { TicketStatus } from '../../../endpoints/tickets/index.ts'

/** What calls are searched by, beside the columns of `calls`. */
export interface CallLabelsTable {
  label: string
  /** Id of the call. */
  id: string
}

/** The parts of the answers of calls with an Idempotency-Key. */
export interface AnswersTable {
  /** Id of the call. */
  id: string
  part: number
  bytes: Uint8Array
}

/** What lines keep for whom. Ids are the upstreams'. */
export interface KeptThingsTable {
  kind: string
  id: string
  account: string
  key: string | null
  line: string
  model: string | null
  tokens: bigint
  created_at: bigint
  /** null if it stays until it is deleted. */
  expires_at: bigint | null
}

export interface TicketsTable {
  id: string
  account: string
  key: string | null
  /** The call that the ticket is about. */
  request_id: string
  message: string
  status: TicketStatus
  reply: string | null
  created_at: bigint
  updated_at: bigint
}

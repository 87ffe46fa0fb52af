import type { ServedBy } from '../../core/call/index.ts'
import type { ProviderConstraint } from '../../core/operations/index.ts'
import type { EarlyEnd } from './early-end.ts'
import type { OwnedRequest } from './kept/owned-request.ts'

/** The price of a successful answer, and what it costs the operator. */
export type ForwardTerms = Omit<ServedBy, 'line'>

/** The parts of a forwarded request that its caller does not set. */
export interface Forwarding {
  /** The path below a line's base URL, with the query. */
  readonly path: string
  /** Headers that replace those of the gateway with the same name. */
  readonly headers: Readonly<Record<string, string>>
  /** The price of a successful answer, and what it costs the operator; null if no usage is recorded. */
  readonly terms: ForwardTerms | null
  /** The caller's demands on the lines. */
  readonly constraint?: ProviderConstraint | undefined
  /** What ends the call before its answer has ended. */
  readonly early: EarlyEnd
  /** Set if the request can only use what its account owns. */
  readonly owned?: OwnedRequest | undefined
}

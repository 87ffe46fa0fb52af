import type { Feature, Model } from '../catalog/index.ts'
import type { ErrorCode } from '../errors/index.ts'
import type { Operation, ProviderConstraint, Usage } from '../operations/index.ts'
import type { ProtocolName } from '../protocols/index.ts'

/** Requests per minute, input tokens per minute; null = unlimited. */
export interface KeyLimits {
  readonly rpm: number | null
  readonly tpm: number | null
}

/** Limits of an account; concurrency is judged per account only. */
export interface AccountLimits extends KeyLimits {
  readonly concurrency: number | null
}

/** Who calls: the account and the key, with what they may do. Written by `authenticate`. */
export interface Principal {
  readonly accountId: string
  readonly keyId: string
  readonly accountLimits: AccountLimits
  readonly keyLimits: KeyLimits
  /** Regions of the lines that may serve this account; undefined = all. */
  readonly lineRegions: readonly string[] | undefined
  /** Whether the key's model allow-list holds a model. */
  mayUseModel(modelId: string): boolean
}

/** The body as it came and as it reads. */
export interface RequestBody {
  /** Empty where it was a form: `json` is what it says then, its files included. */
  readonly raw: Buffer
  readonly json: Readonly<Record<string, unknown>>
}

/** Something that a line keeps, and what is asked about it. */
export interface LineResource {
  readonly method: 'GET' | 'DELETE'
  /** Behind the line's base URL, with the query. */
  readonly path: string
}

/** The one line that may serve a call, as it has what the call refers to. */
export interface Pin {
  readonly line: string
  /** What it has, for the trace. */
  readonly holds: string
}

/** An answer that its line keeps. */
export interface KeptAnswer {
  /** The upstream's id of it. */
  readonly id: string
  readonly line: string
  /** About how many tokens it brings into a conversation that goes on from it: its input and its output. */
  readonly tokens: number
}

/** What was read off the request. Written by `readRequest`. */
export interface CallRequest {
  readonly operation: Operation
  readonly body: RequestBody
  readonly model: Model
  readonly stream: boolean
  readonly features: ReadonlySet<Feature>
  readonly estimatedInputTokens: number
  /** Tokens that have to fit into the model's window at a time. */
  readonly windowTokens: number
  /** Maximum output the caller asked for, in tokens. */
  readonly maxOutputTokens: number | undefined
  /** How many answers were asked for (`n`). */
  readonly answers: number
  /** The most of the operation's price unit that it can come to, where that is no token. */
  readonly units: number
  readonly messages: number
  readonly tools: number
  readonly images: number
  readonly constraint: ProviderConstraint | undefined
  /** The constraint as the caller wrote it, in the body or in the header. */
  readonly provider: unknown
  /** Set where no model is run, and something is asked about what a line keeps. */
  readonly resource?: LineResource
}

/** Why a line was not tried. */
export type EliminationReason =
  | 'pinned'
  | 'disabled'
  | 'provider_constraint'
  | 'region'
  | 'protocol'
  | 'feature'
  | 'context_window'
  | 'price_ceiling'
  | 'resting'
  | 'circuit_open'

/** A line that a filter removed. */
export interface Elimination {
  readonly line: string
  readonly reason: EliminationReason
  readonly detail: string
}

/** The clock that ended an attempt. */
export type TimeoutPhase = 'connect' | 'first_byte' | 'idle' | 'total'

/** How one attempt ended: an answer, or the error code it would have alone, or the caller left. */
export type AttemptOutcome = 'completed' | 'abandoned' | ErrorCode

/** One exchange with one line. Times are milliseconds, rounded. */
export interface AttemptRecord {
  readonly line: string
  /** What the line speaks; where it is not what the caller speaks, the attempt was translated. */
  readonly protocol: ProtocolName
  /** Of the line, as its config names it. */
  readonly provider: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** null where the call names no model. */
  readonly upstreamModel: string | null
  readonly upstreamStatus: number | null
  readonly outcome: AttemptOutcome
  readonly timeoutPhase: TimeoutPhase | null
  /** What went wrong, in words for the operator; null where the outcome says it all. */
  readonly detail: string | null
  readonly connectMs: number | null
  readonly firstByteMs: number | null
  readonly durationMs: number
  /** Parts of a translated answer that have no counterpart in the caller's protocol, and were left out. */
  readonly skipped: number
}

/** What happened when the caller left before the answer was complete. */
export interface DisconnectTrace {
  readonly policy: 'abort' | 'drain'
  /** Why the upstream read ended: at once, with the answer's end, or when the drain's time was up. */
  readonly ended: 'aborted' | 'drained' | 'drain_timeout' | 'upstream_failed'
}

/** How the call was routed. Written by `route`. */
export interface RoutingTrace {
  readonly region: string
  readonly strategy: string
  readonly eliminated: Elimination[]
  readonly attempts: AttemptRecord[]
  /** Set when a retry was withheld: every line was down at once and the model's retry budget was spent. */
  retryBudgetSpent?: true
  disconnect?: DisconnectTrace
}

/** The limit that refused a call. */
export interface LimitRefusal {
  readonly kind: 'rpm' | 'tpm' | 'concurrency'
  readonly level: string
  readonly subject: string
  readonly limit: number
  /** Seconds. */
  readonly retryAfter: number
}

/**
 * The record that a call holds while it runs for its Idempotency-Key. The owner is the call's id and the record's
 * generation: whoever takes an expired record over has another.
 */
export interface IdempotencyClaim {
  readonly id: string
  readonly owner: string
}

/** A claim and what has become of it. */
export interface RunningClaim extends IdempotencyClaim {
  /** How long the record of a completed call is kept, in milliseconds. */
  readonly keepMs: number
  /**
   * - `running`: held and renewed; given back at the end of the call if it produced nothing.
   * - `settling`: being completed, or nobody knows whether it is; it stays held until that is known.
   * - `completed`: noted as run, durably.
   * - `releasing`, `released`: given back; the key is free.
   * - `lost`: taken over by a later call.
   */
  state: 'running' | 'settling' | 'completed' | 'releasing' | 'released' | 'lost'
}

/** Bytes of an answer; what is large comes in pieces, so that it need not be copied into one. */
export type AnswerBytes = Buffer | string | readonly Buffer[]

/** How a call is about to end, told to what has to be durable before it does. */
export interface CallEnding {
  readonly outcome: CallOutcome
  /** The last of the answer, which goes out only afterwards. */
  readonly unsent: AnswerBytes | null
}

/** What a call's Idempotency-Key came to. */
export interface IdempotencyTrace {
  readonly key: string
  /** The call that ran first with this key, where this one did not run for it. */
  originalRequestId: string | null
  /** What the caller was sent, or as much of it as is kept. Set when the call ends. */
  responseBody: string | null
  /** What this call runs under; null where it was refused for its key. */
  claim: RunningClaim | null
  /** Whether a ledger completes the record, in the transaction of the charge. */
  readonly completedByLedger: boolean
  /** What the caller has been sent by now, and what is still to be sent. */
  bodyWith(unsent: AnswerBytes | null): string | null
  /** Takes output that was produced and not sent, such as to a caller who has left: it belongs to the kept body. */
  readonly keep: (output: AnswerBytes) => void
  /** Keeps nothing of the body: the call was not charged after all, and was sent nothing of it. */
  readonly discard: () => void
}

/** How a call ended. */
export type Finish = 'completed' | 'refused' | 'failed' | 'interrupted'

/** The end of a call, as the log keeps it. */
export interface CallOutcome {
  /** HTTP status of the answer; 499 where the caller left before it was whole. */
  readonly status: number
  readonly errorCode: ErrorCode | null
  readonly finish: Finish
}

export type { Usage }

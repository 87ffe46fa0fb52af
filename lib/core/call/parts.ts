import type { Model, Tags, UnsupportedPolicy } from '../catalog/index.ts'
import type { ErrorCode, GatewayError } from '../errors/index.ts'
import type {
  FinishReason,
  Operation,
  ProviderConstraint,
  Reference,
  RequestFacts,
  ResourceName,
  Usage,
} from '../operations/index.ts'
import type { ProtocolName } from '../protocols/index.ts'
import type { AccountLimits, KeyLimits } from './caller-limits.ts'

/** The account and the key of the caller, with their limits and permissions. Written by `authenticate`. */
export interface Principal {
  readonly accountId: string
  readonly keyId: string
  readonly accountLimits: AccountLimits
  readonly keyLimits: KeyLimits
  /** The tags of all calls of the key, which callers cannot change. Absent: none. */
  readonly tags?: Tags
  /** Regions of the lines that may serve this account; undefined = all. */
  readonly lineRegions: readonly string[] | undefined
  /** Whether the key may use a model. */
  mayUseModel(modelId: string): boolean
}

/** The body as bytes and as JSON. */
export interface RequestBody {
  /** Empty if the body was a form; `json` then has its members, files included. */
  readonly raw: Buffer
  readonly json: Readonly<Record<string, unknown>>
}

/** An object that a line stores, and the request about it. */
export interface LineResource {
  readonly method: 'GET' | 'DELETE'
  /** Path and query behind the line's base URL. */
  readonly path: string
}

/** The only line that may serve a call, because it has what the call refers to. */
export interface Pin {
  readonly line: string
  /** The name of the thing that the line has, such as `the response`, for the trace. */
  readonly holds: string
}

/** The things that an answer leaves at its line. */
export interface KeptAnswer {
  readonly made: readonly ResourceName[]
  readonly line: string
  /** About how many tokens it adds to a conversation that continues from it: its input and its output. */
  readonly tokens: number
}

/** The parts of the request that were read. Written by `readRequest`. */
export interface CallRequest extends Required<Omit<RequestFacts, 'model' | 'featureParams'>> {
  readonly operation: Operation
  readonly body: RequestBody
  readonly model: Model
  /** The models that follow, in this order, if no line of `model` can serve the call. The key may use all of them. */
  readonly fallbacks: readonly Model[]
  readonly constraint: ProviderConstraint | undefined
  /** The provider constraint as the caller wrote it, in the body or in the header. */
  readonly provider: unknown
  /** The caller's policy for members that cannot be translated for a line. */
  readonly unsupported?: UnsupportedPolicy | undefined
  /** The kept things that the body names. Only the line that has them may get the request: see `pin`. */
  readonly references: readonly Reference[]
  /** Set if no model runs and the call asks about an object that a line stores. */
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
  /** The model that the line was removed for. Absent if the call had only one. */
  readonly model?: string
  readonly reason: EliminationReason
  readonly detail: string
}

/** The clock that ended an attempt. */
export type TimeoutPhase = 'connect' | 'first_byte' | 'idle' | 'total'

/** How an attempt ended: with an answer, with the error code it would have alone, or because the caller left. */
export type AttemptOutcome = 'completed' | 'abandoned' | ErrorCode

/** An upstream's own error. Members that it does not name are null. */
export interface AttemptError {
  readonly type: string | null
  readonly code: string | null
  readonly param: string | null
  /** Without what it quotes of the request, which is `…`. */
  readonly message: string | null
}

/** One exchange with a line. Times are milliseconds, rounded. */
export interface AttemptRecord {
  readonly line: string
  /** The line's protocol. If it is not the caller's, the attempt was translated. */
  readonly protocol: ProtocolName
  /** The provider of the line, as the config names it. */
  readonly provider: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** The model that the line was tried for. Absent if the call had only one. */
  readonly model?: string
  /** null if the call names no model. */
  readonly upstreamModel: string | null
  readonly upstreamStatus: number | null
  readonly outcome: AttemptOutcome
  readonly timeoutPhase: TimeoutPhase | null
  /** The cause of the failure, for operators; null if the outcome says it all. */
  readonly detail: string | null
  /** The error that the upstream sent; absent if it sent none. */
  readonly upstreamError?: AttemptError | undefined
  readonly connectMs: number | null
  readonly firstByteMs: number | null
  readonly durationMs: number
  /** The number of parts of a translated answer that were left out because the caller's protocol has no counterpart. */
  readonly skipped: number
  /** The members of a translated request that were left out because the line's protocol has no counterpart. */
  readonly dropped?: readonly string[] | undefined
  /** Why the answer ended, unless it is complete; `other` for a reason that the gateway does not know. */
  readonly finishReason?: FinishReason | undefined
}

/** The policy that applied when the caller left before the answer was complete, and its effect. */
export interface DisconnectTrace {
  readonly policy: 'abort' | 'drain'
  /** Why the upstream read ended: at once, with the end of the answer, or when the drain's time was up. */
  readonly ended: 'aborted' | 'drained' | 'drain_timeout' | 'upstream_failed'
}

/** How the call was routed. Written by `route`. */
export interface RoutingTrace {
  readonly region: string
  readonly strategy: string
  readonly eliminated: Elimination[]
  attempts: readonly AttemptRecord[]
  /** Set if a retry was withheld because all lines were down at once and the model's retry budget was spent. */
  retryBudgetSpent?: true
  disconnect?: DisconnectTrace
}

/** The part of a cache in a call. */
export interface CacheTrace {
  readonly outcome: 'hit' | 'miss'
  /** The id of the call that got the answer first; null for a miss. */
  readonly from: string | null
}

/** The limit that refused a call. */
export interface LimitRefusal {
  /** `requests` and `tokens` are those of windows that are not a minute. */
  readonly kind: 'rpm' | 'tpm' | 'requests' | 'tokens' | 'concurrency'
  readonly level: string
  readonly subject: string
  readonly limit: number
  /** Seconds. */
  readonly retryAfter: number
}

/** Counts against the limits that admitted a call. */
export interface CallLimits {
  /**
   * Counts further requests of the call. If a limit is used up, counts none of them and returns a function that refuses the
   * call and returns the error. Never rejects.
   */
  consumeRequests(count: number): Promise<(() => GatewayError) | undefined>
}

/**
 * The record that a call holds for its Idempotency-Key while it runs. The owner is the call's id and the record's
 * generation, so that a call which takes over an expired record has another owner.
 */
export interface IdempotencyClaim {
  readonly id: string
  readonly owner: string
}

/** A claim and its state. */
export interface RunningClaim extends IdempotencyClaim {
  /** How long the record of a completed call is kept, in milliseconds. */
  readonly keepMs: number
  /**
   * - `running`: held and renewed; released at the end of the call if the call produced nothing.
   * - `settling`: being completed, or it is unknown whether it was; the claim stays held until that is known.
   * - `completed`: recorded as run, durably.
   * - `releasing`, `released`: given up; the key is free.
   * - `lost`: taken over by a later call.
   */
  state: 'running' | 'settling' | 'completed' | 'releasing' | 'released' | 'lost'
}

/** The bytes of an answer. Large ones come in pieces, so that they need not be copied into one. */
export type AnswerBytes = Buffer | string | readonly Buffer[]

/** How a call is about to end, for settlers. */
export interface CallEnding {
  readonly outcome: CallOutcome
  /** The last part of the answer, which is sent only after the settlers. */
  readonly unsent: AnswerBytes | null
}

/** The use of an Idempotency-Key by a call. */
export interface IdempotencyTrace {
  readonly key: string
  /** The id of the call that ran first with this key, if it was another call. */
  originalRequestId: string | null
  /** The body that the caller was sent, or as much of it as is stored. Set when the call ends. */
  responseBody: string | null
  /** The claim under which this call runs; null if the call was refused because of its key. */
  claim: RunningClaim | null
  /** Whether a ledger completes the record, in the transaction of the charge. */
  readonly completedByLedger: boolean
  /** Returns the body that has been sent so far, followed by what is still to be sent. */
  bodyWith(unsent: AnswerBytes | null): string | null
  /** Returns how many bytes of that body the entry has; 0 if it is kept apart. */
  bytesWith(unsent: AnswerBytes | null): number
  /** In how many parts the body is kept apart from the entry; 0 if the entry has it. */
  readonly partsApart: number
  /**
   * Writes a body that is too large for the entry, followed by what is still to be sent. Call it before the entry is written.
   *
   * @returns whether it could be written; undefined if the body belongs into the entry.
   */
  keepApart(unsent: AnswerBytes | null): Promise<boolean> | undefined
  /** Adds output that was produced and not sent, for example because the caller left, to the stored body. */
  readonly keep: (output: AnswerBytes) => void
  /** Stores nothing of the body, because the call was not charged and was sent nothing. */
  readonly discard: () => void
}

/** How a call ended. */
export type Finish = 'completed' | 'refused' | 'failed' | 'interrupted'

/** The end of a call in the call log. */
export interface CallOutcome {
  /** The HTTP status of the answer; 499 if the caller left before it was complete. */
  readonly status: number
  readonly errorCode: ErrorCode | null
  readonly finish: Finish
}

export type { Usage }

import type { LineResult } from '../../../core/call/index.ts'
import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../core/json/index.ts'
import type { KnownObservation, ObservedState, TaskError } from '../../../ledger/tasks/task.ts'
import type { CancelOutcome, CreateOutcome, ReadOutcome } from '../tasks/line-client.ts'

/** Reads the answers of one protocol of lines. */
export interface AnswerParser {
  /** @throws SyntaxError if it is not a valid answer to a create. */
  created(members: JsonObject): KnownObservation
  /** @throws SyntaxError if it is not a valid answer to a read. */
  read(members: JsonObject): KnownObservation
}

/**
 * Returns the result of a create. It was surely not accepted if there was no connection or the line refused it; after
 * any other failure the result is unknown.
 */
export function createOutcome(result: LineResult, parser: AnswerParser): CreateOutcome {
  switch (result.kind) {
    case 'answered':
      return readAs(
        result.status,
        () => {
          const members = membersOf(result.body)
          const upstreamId = idOf(members)
          return { kind: 'accepted', upstreamId, observation: parser.created(members) } as const
        },
        (reply) => ({ kind: 'unknown', code: 'upstream_error', ...reply }),
      )
    case 'refused': {
      const { status: upstreamStatus, failure } = result
      const { code, detail, param, retryAfterMs } = failure
      const reply = { upstreamStatus, detail }
      if (!isRefusal(upstreamStatus)) return { kind: 'unknown', code: 'upstream_error', ...reply }
      return {
        kind: 'refused',
        code,
        next: failure.retryable,
        ...(param !== undefined && { param }),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
        ...reply,
      }
    }
    case 'failed': {
      const { code, detail } = result.failure
      const reply = { upstreamStatus: null, detail }
      return result.sent
        ? { kind: 'unknown', code, ...reply }
        : { kind: 'refused', code, next: true, ...reply }
    }
  }
}

/**
 * Whether a status says that nothing was done: 4xx does, and so do 503 and 529, an overload; 408, a timeout, and other
 * 5xx leave it unknown.
 */
function isRefusal(status: number): boolean {
  return (status >= 400 && status < 500 && status !== 408) || status === 503 || status === 529
}

export function readOutcome(result: LineResult, parser: AnswerParser): ReadOutcome {
  if (result.kind !== 'answered') return missingOrAway(result)
  return readAs(
    result.status,
    () => ({ kind: 'answered', observation: parser.read(membersOf(result.body)) }) as const,
    (reply) => ({ kind: 'away', code: 'upstream_error', ...reply }),
  )
}

const CONFLICTS: ReadonlySet<number> = new Set([400, 409, 422])

export function cancelOutcome(result: LineResult, done: 'cancelled' | 'deleted'): CancelOutcome {
  if (result.kind === 'answered') return { kind: done, upstreamStatus: result.status, detail: null }
  if (result.kind === 'refused' && CONFLICTS.has(result.status))
    return { kind: 'conflict', upstreamStatus: result.status, detail: result.failure.detail }
  return missingOrAway(result)
}

function missingOrAway(result: Exclude<LineResult, { kind: 'answered' }>) {
  const { code, detail, retryAfterMs } = result.failure
  const upstreamStatus = result.kind === 'refused' ? result.status : null
  if (upstreamStatus === 404 || upstreamStatus === 410)
    return { kind: 'missing', upstreamStatus, detail } as const
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  return { kind: 'away', code, upstreamStatus, detail, ...wait } as const
}

type Reply = { readonly upstreamStatus: number; readonly detail: string | null }

function readAs<Good extends object, Bad>(
  upstreamStatus: number,
  read: () => Good,
  faulty: (reply: Reply) => Bad,
): (Good & Reply) | Bad {
  try {
    return { ...read(), upstreamStatus, detail: null }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return faulty({ upstreamStatus, detail: error.message })
  }
}

function membersOf(body: Buffer): JsonObject {
  const json = parseJson(body.toString(), body)
  if (json === undefined) throw new SyntaxError('the answer is not JSON, or too large to be read')
  if (!isJsonObject(json)) throw new SyntaxError('the answer is not a JSON object')
  return json
}

/** The form of a task id. It becomes part of paths, in which dots alone have a meaning, and databases store no NUL. */
const ID = /^(?!\.+$)[\x20-\x7e]{1,512}$/

function idOf({ id }: JsonObject): string {
  if (typeof id !== 'string' || !ID.test(id)) throw new SyntaxError('the answer to a create names no task')
  return id
}

/**
 * Returns a function that reads the status of a task. A status that is not in `states` counts as running.
 *
 * @throws SyntaxError if the status is no text.
 */
export function stateReader(
  states: Readonly<Record<string, ObservedState>>,
  onUnknownStatus: (status: string) => void,
): (status: unknown) => ObservedState {
  return (status) => {
    if (typeof status !== 'string') throw new SyntaxError('the answer has no status')
    if (Object.hasOwn(states, status)) return states[status] as ObservedState
    onUnknownStatus(status)
    return 'running'
  }
}

export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined
}

/** Returns a status or a size of a line; undefined if the value is no text or too long. */
export function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= 40 ? value.toWellFormed() : undefined
}

/** Leaves out undefined members, so that they do not overwrite known values. */
export function known<T extends object>(members: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> }
}

const MODERATION = /sensitive|moderation|policy|content_filter|safety|risk/i

/** Returns why a task failed, without the line's own text; null if the reason is unknown. */
export function reasonOf(error: unknown): TaskError | null {
  const code = isJsonObject(error) ? error.code : undefined
  if (typeof code !== 'string' || !MODERATION.test(code)) return null
  return { code: 'content_filtered', message: new GatewayError('content_filtered').message }
}

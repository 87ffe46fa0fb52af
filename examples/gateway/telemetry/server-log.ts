import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'express-model-gateway'
import { noAnswerReason } from 'express-model-gateway/errors'

/** How often a server that is away is asked, in milliseconds. */
const ASK_MS = 500
/** A server that takes longer for an answer is away, in milliseconds. */
const ANSWERS_WITHIN_MS = 1000
/** An operation that began in an outage has failed this long after it, in milliseconds. */
const FAILS_WITHIN_MS = 10_000

const AWAY = 'store is away'
const STILL_AWAY = 'store is still away'
const BACK = 'store is back'
const NO_ANSWER = 'a request failed because a store gave no answer'
/** The codes of errors about a certificate or a login, which do not pass by themselves. */
const NEEDS_OPERATOR = /CERT|^UNABLE_TO_|^28/

/** Options of {@link serverLog}. */
export interface ServerLogOptions {
  /** The name of the server in the log, such as `database`. */
  readonly server: string
  /** The effect on callers while it is away, of all that uses it. */
  readonly effect: string
  /** Rejects while the server does not do what its users need. */
  readonly ask: () => Promise<unknown>
  /** Whether the gateway has closed its connections, so that no answer means nothing any more. */
  readonly isClosed: () => boolean
  readonly logger: Logger
}

type Level = 'info' | 'warn' | 'error'

interface Line {
  readonly level: Level
  readonly fields: {
    readonly store?: unknown
    readonly err?: unknown
    readonly reason?: unknown
    readonly address?: unknown
  }
  readonly message: string
}

const NOTHING: Pick<Line, 'fields'> = { fields: {} }

/**
 * Returns the log for all users of a server, such as the database or Redis. An outage of the server is one line when it goes
 * away and one when it is back, and one more if its certificate or login is refused when it is reached again. When a user
 * reports that it gets no answer, the server is asked: if it answers, such as where somebody has locked a table, the line of
 * the user is logged as it is.
 */
export function serverLog({ server, effect, ask, isClosed, logger }: ServerLogOptions): Logger {
  /** Lines that wait for the answer of the server. */
  let held: Line[] = []
  let isAsking = false
  let isAway = false
  let isSettling = false
  /** The users whose outage is part of the server's. */
  const joined = new Set<unknown>()

  function take(line: Line): void {
    const { message, fields } = line
    if (!isOfOutage(line)) write(line)
    else if (message === BACK && (joined.delete(fields.store) || forget(fields.store))) return
    else if (isAway) join(line)
    else if (!isSettling || message === AWAY) {
      held.push(line)
      if (!isAsking) void follow()
    }
  }

  async function follow(): Promise<void> {
    isAsking = true
    while (held.length > 0) {
      const fault = await currentFault()
      if (fault !== undefined) await outage(fault)
      for (const line of held.splice(0)) write(line)
    }
    isAsking = false
  }

  /** Resolves when the server is back for good. */
  async function outage(fault: unknown): Promise<void> {
    for (let again: unknown = fault; again !== undefined; again = await settled()) {
      const since = performance.now()
      // The report of a user is more exact than the answer to the question, which may only be that the server counts as away.
      const { fields } = held.find(({ message }) => message === AWAY) ?? held[0] ?? NOTHING
      const { err = again, reason, address } = fields
      const about = { ...(reason !== undefined && { reason }), ...(address !== undefined && { address }) }
      logger.error({ err, ...about, store: server, effect }, AWAY)
      isAway = true
      for (const line of held.splice(0)) join(line)
      await recovery(codeOf(err))
      isAway = false
      if (isClosed()) return
      logger.warn({ store: server, forMs: Math.round(performance.now() - since) }, BACK)
    }
  }

  /**
   * Waits until the server does what it is asked. Logs a fault that needs somebody.
   *
   * @param logged the code of the fault that the log has.
   */
  async function recovery(logged: string): Promise<void> {
    for (;;) {
      await sleep(ASK_MS, undefined, { ref: false })
      const fault = await currentFault()
      if (fault === undefined) return
      const code = codeOf(fault)
      if (code === logged || !NEEDS_OPERATOR.test(code)) continue
      logged = code
      logger.error({ err: fault, store: server, effect }, STILL_AWAY)
    }
  }

  /** Waits while operations that began in the outage may fail. Resolves to the fault of the next outage, if there is one. */
  async function settled(): Promise<unknown> {
    isSettling = true
    let fault: unknown
    for (let ms = 0; fault === undefined && ms < FAILS_WITHIN_MS; ms += ASK_MS) {
      await sleep(ASK_MS, undefined, { ref: false })
      fault = await currentFault()
    }
    isSettling = false
    return fault
  }

  async function currentFault(): Promise<unknown> {
    if (isClosed()) return undefined
    const fault = await faultOf(ask)
    return isClosed() ? undefined : fault
  }

  function join({ message, fields }: Line): void {
    if (message === AWAY) joined.add(fields.store)
  }

  /** Removes a line that waits, because its user is back; returns whether there was one. Its outage ended with the server's. */
  function forget(store: unknown): boolean {
    if (!isSettling) return false
    const others = held.filter(({ fields }) => fields.store !== store)
    const wasHeld = others.length < held.length
    held = others
    return wasHeld
  }

  function write({ level, fields, message }: Line): void {
    logger[level](fields, message)
  }

  return {
    info: (fields, message) => take({ level: 'info', fields, message }),
    warn: (fields, message) => take({ level: 'warn', fields, message }),
    error: (fields, message) => take({ level: 'error', fields, message }),
  }
}

function isOfOutage({ message, fields }: Line): boolean {
  if (message === AWAY || message === BACK || message === NO_ANSWER) return true
  return noAnswerReason(fields.err) !== undefined
}

function codeOf(fault: unknown): string {
  return `${(fault as { code?: unknown } | null)?.code}`
}

/** Returns why the server does not do what it is asked; undefined if it does. */
async function faultOf(ask: () => Promise<unknown>): Promise<unknown> {
  const late = sleep(ANSWERS_WITHIN_MS, new Error(`no answer within ${ANSWERS_WITHIN_MS} ms`), { ref: false })
  try {
    return await Promise.race([ask().then(() => undefined), late])
  } catch (error) {
    return error ?? new Error('it cannot be used')
  }
}

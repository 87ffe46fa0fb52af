import { setTimeout as sleep } from 'node:timers/promises'
import type { Call, Logger } from 'express-model-gateway'
import { destination, pino } from 'pino'
import { isRead } from '../http-method.ts'

/** Control, format and separator characters: they could command a terminal or break lines, and JSON leaves many as they are. */
const NOT_TEXT = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gv

/** The most bytes that wait for an output that takes nothing. Lines behind them are dropped. */
const WAITING_BYTES = 8 * 1024 * 1024
/** How long the end of the process waits for a reader that takes nothing, in milliseconds. */
const STANDSTILL_MS = 4000
const CHECK_INTERVAL_MS = 10

/** The log of this process. */
export interface ProcessLog extends Logger {
  /**
   * Resolves when all lines are written. Nothing is logged after it. An output that takes nothing for four seconds ends the
   * process.
   */
  close(): Promise<void>
}

/**
 * Returns a logger that writes one JSON object per line to the standard output. Texts of callers are escaped, so that they
 * cannot affect a terminal or break a line. An output that is full, away or slow never stops the process.
 *
 * @param level of pino: `debug`, `info`, `warn`, `error`, `silent` and so on.
 */
export function openLog(level: string): ProcessLog {
  const output = destination({ dest: 1, sync: false, maxLength: WAITING_BYTES })
  let isFailing = false
  let progressAt = performance.now()
  output.on('write', () => {
    isFailing = false
    progressAt = performance.now()
  })
  // The output keeps what could not be written and tries again with the next line.
  output.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (!isFailing) console.error(`the log cannot be written: ${code}`)
    isFailing = true
  })
  // Pino writes the remaining lines when the process exits, and would try for ever on an output that fails.
  process.prependListener('exit', () => {
    if (isFailing) output.destroy()
  })
  const logger = pino({ level, hooks: { streamWrite: escaped } }, output)
  return {
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    async close() {
      const closedAt = performance.now()
      let isClosed = false
      output.once('close', () => {
        isClosed = true
      })
      output.end()
      while (!isClosed && performance.now() - Math.max(closedAt, progressAt) < STANDSTILL_MS)
        await sleep(CHECK_INTERVAL_MS)
      // A write to an output that nobody reads waits in a thread, and Node waits for its threads when it exits.
      if (!isClosed) process.kill(process.pid, 'SIGKILL')
    },
  }
}

/** The paths that probes and scrapes request every second. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])

/** A longer path is cut. */
const MAX_PATH_CHARS = 500

/** Returns a function that logs one line at the end of a call that took `ms`, without secrets and prompts; none for a probe. */
export function accessLog(logger: Logger): (call: Call, ms: number) => void {
  return (call, ms) => {
    const { outcome, principal, routing } = call
    if (PROBES.has(call.path) && isRead(call)) return
    const fields = {
      requestId: call.id,
      clientRequestId: call.clientRequestId ?? undefined,
      method: call.method,
      path: call.path.slice(0, MAX_PATH_CHARS),
      status: outcome?.status,
      code: outcome?.errorCode ?? undefined,
      outcome: outcome?.finish,
      ms: Math.round(ms),
      account: principal?.accountId,
      key: principal?.keyId,
      model: call.model ?? undefined,
      line: routing?.attempts.at(-1)?.line,
      attempts: routing?.attempts.length,
    }
    logger.info(fields, 'call')
  }
}

/** Escapes the characters of a line of JSON that are no text. The end of the line stays. */
function escaped(line: string): string {
  const json = line.slice(0, -1)
  return json.search(NOT_TEXT) < 0 ? line : `${json.replace(NOT_TEXT, escapeCharacter)}\n`
}

/** Escapes a character as JSON does, so that a JSON parser restores it. */
function escapeCharacter(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

import { hostname } from 'node:os'
import { inspect } from 'node:util'
import type { Call, Logger } from 'express-model-gateway'
import { err as serializedError } from 'pino-std-serializers'
import sonicBoom from 'sonic-boom'

/** Control, format and separator characters: they could command a terminal or break lines, and JSON leaves many as they are. */
const NOT_TEXT = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--\n]/gv

/** Of pino, so that its tools read these lines. */
const LEVELS: Readonly<Record<string, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  fatal: 60,
}

/** How long lines of the level `info` wait for others, so that one system call writes them all. */
const GATHER_MS = 10
const MAX_GATHERED_LENGTH = 16_384

/**
 * Returns a logger that writes one JSON object per line to the standard output, with pino's members. Texts of callers are
 * escaped, so that they cannot affect a terminal or break a line.
 *
 * Warnings and errors are written at once, with all lines before them; other lines within 10 ms. It builds each line at
 * once: pino builds it member by member, which allocates four times as much.
 */
export function jsonLog(level: string): Logger {
  const write = gatheredOutput()
  const least = LEVELS[level] ?? Number.POSITIVE_INFINITY
  const source = `,"pid":${process.pid},"hostname":${JSON.stringify(hostname())}`
  const logAt = (name: keyof Logger): Logger[typeof name] => {
    const severity = LEVELS[name] as number
    if (severity < least) return () => {}
    const begin = `{"level":${severity},"time":`
    return (fields, message) => {
      const line = `${begin}${Date.now()}${source}${membersOf(fields)},"msg":${JSON.stringify(message)}}\n`
      write(line, name !== 'info')
    }
  }
  return { info: logAt('info'), warn: logAt('warn'), error: logAt('error') }
}

/** What probes and scrapes ask every second. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics'])

/** Returns a function that logs one line at the end of a call, without secrets and prompts; none for a probe. */
export function accessLog(logger: Logger): (call: Call) => void {
  return (call) => {
    const { outcome, principal, routing } = call
    if (PROBES.has(call.path) && (call.method === 'GET' || call.method === 'HEAD')) return
    const fields = {
      requestId: call.id,
      clientRequestId: call.clientRequestId ?? undefined,
      method: call.method,
      path: call.shortPath,
      status: outcome?.status,
      code: outcome?.errorCode ?? undefined,
      outcome: outcome?.finish,
      ms: Date.now() - call.startedAt,
      account: principal?.accountId,
      key: principal?.keyId,
      model: call.model ?? undefined,
      line: routing?.attempts.at(-1)?.line,
      attempts: routing?.attempts.length,
    }
    logger.info(fields, 'call')
  }
}

/**
 * Returns a function that writes a line to the standard output, at once or with the lines that follow it. Lines that
 * wait when the process exits are written then.
 */
function gatheredOutput(): (line: string, atOnce: boolean) => void {
  const output = new sonicBoom.SonicBoom({ fd: 1 })
  let readable = true
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    // Nobody reads the log any more, which is no reason to end.
    readable = false
  })
  let lines = ''
  const flush = (): void => {
    if (lines === '') return
    const text = lines.replace(NOT_TEXT, escaped)
    lines = ''
    if (readable) output.write(text)
  }
  process.on('exit', () => {
    flush()
    if (readable) output.flushSync()
  })
  return (line, atOnce) => {
    if (lines === '' && !atOnce) setTimeout(flush, GATHER_MS).unref()
    lines += line
    if (atOnce || lines.length > MAX_GATHERED_LENGTH) flush()
  }
}

/** Returns the fields as JSON members, with a leading comma. It never throws: fields that are not JSON become text. */
function membersOf(fields: object & { err?: unknown }): string {
  let json: string
  try {
    json = JSON.stringify(
      fields.err instanceof Error ? { ...fields, err: serializedError(fields.err) } : fields,
    )
  } catch {
    json = JSON.stringify({ fields: inspect(fields) })
  }
  return json === '{}' ? '' : `,${json.slice(1, -1)}`
}

/** Escapes a character as JSON does, so that a JSON parser restores it. */
function escaped(character: string): string {
  let text = ''
  for (let i = 0; i < character.length; i++) {
    text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
  }
  return text
}

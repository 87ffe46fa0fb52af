import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Call, Logger } from 'express-model-gateway'
import { err as serializedError } from 'pino-std-serializers'
import sonicBoom from 'sonic-boom'

/** Control, format and separator characters: they could command a terminal or break lines, and JSON leaves many as they are. */
const NOT_TEXT = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gv

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
const GATHERED_BYTES = 32_768
/** What waits for an output that takes nothing, in bytes. Lines behind it are dropped. */
const WAITING_BYTES = 8 * 1024 * 1024
/** How long an exit waits for a reader that takes nothing, of this process: other workers with the same output may be first. */
const STANDSTILL_MS = 2000
/** A write that found no room is tried again after 100 ms. One that has not returned by then, and for so long, waits for room. */
const RETRIED_MS = [80, 300] as const
/** The most bytes that an element of a string takes in UTF-8. */
const BYTES_PER_UNIT = 3
const COMMA = 0x2c

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
  const logAt = (name: keyof Logger): Logger[typeof name] => {
    const severity = LEVELS[name] as number
    if (severity < least) return () => {}
    return write.bind(null, `{"level":${severity},"time":`, name !== 'info')
  }
  return { info: logAt('info'), warn: logAt('warn'), error: logAt('error') }
}

/** Whether lines wait that may still be written. */
let isBeingRead = (_exitSince: number): boolean => false

/** Resolves when all lines are written, or nobody reads them. An exit knows only then which. */
export async function logWritten(): Promise<void> {
  const since = performance.now()
  while (isBeingRead(since)) await sleep(GATHER_MS)
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
 * wait when the process exits are written then, unless nobody reads them.
 */
function gatheredOutput(): (begin: string, atOnce: boolean, fields: object, message: string) => void {
  /** The bytes that were sent, and those that the reader has taken: the others wait. */
  let sent = 0
  let taken = 0
  /** Since when the reader has taken nothing of what waits. */
  let waitingSince = 0
  /** When a write last returned because there was no room. Any process with the same output may make it wait instead. */
  let returnedAt = Number.NEGATIVE_INFINITY
  let exiting = false
  const standsStill = (): boolean => taken < sent && performance.now() - waitingSince >= STANDSTILL_MS
  /** What was left at the last such return, in bytes. What is written at the exit tells nobody of its progress but here. */
  let left = 0
  const retryEAGAIN = (_error: unknown, writing: number, behind: number): boolean => {
    returnedAt = performance.now()
    if (writing + behind < left) waitingSince = returnedAt
    left = writing + behind
    return !exiting || !standsStill()
  }
  const output = new sonicBoom.SonicBoom({
    ...{ fd: 1, contentMode: 'buffer', maxLength: WAITING_BYTES },
    retryEAGAIN,
  })
  // Its types know texts only.
  const send = output.write.bind(output) as unknown as (bytes: Buffer) => boolean
  const source = `,"pid":${process.pid},"hostname":${JSON.stringify(hostname())}`
  let failing = false
  // A full disk, or that nobody reads the log any more, is no reason to end. What waits is tried again with what follows.
  output.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (!failing) console.error(`the log cannot be written: ${code}`)
    failing = true
  })
  output.on('write', (bytes: number) => {
    failing = false
    taken += bytes
    waitingSince = performance.now()
  })
  output.on('drop', ({ length }: Buffer) => {
    taken += length
  })
  // Lines are not joined as strings: each would be copied once more.
  const gathered = Buffer.allocUnsafe(GATHERED_BYTES)
  let used = 0
  const flush = (): void => {
    if (used === 0) return
    if (taken === sent) waitingSince = performance.now()
    sent += used
    send(Buffer.from(gathered.subarray(0, used)))
    used = 0
  }
  isBeingRead = (exitSince) => {
    flush()
    if (taken === sent) return false
    waitingSince = Math.max(waitingSince, exitSince)
    const ago = performance.now() - returnedAt
    return !standsStill() || (ago > RETRIED_MS[0] && ago < RETRIED_MS[1])
  }
  process.on('exit', () => {
    if (standsStill() && !failing) {
      // No exit ends a thread that waits in a write.
      if (performance.now() - returnedAt >= RETRIED_MS[1]) process.kill(process.pid, 'SIGKILL')
      return
    }
    flush()
    exiting = true
    // It would try for ever.
    if (failing) return
    try {
      output.flushSync()
    } catch {
      // Nobody reads the log any more.
    }
  })
  return (begin, atOnce, fields, message) => {
    const members = jsonOf(fields)
    const end = jsonOf(message)
    const most = BYTES_PER_UNIT * (members.length + end.length) + begin.length + source.length + 64
    if (used + most > GATHERED_BYTES) flush()
    if (used === 0 && !atOnce) setTimeout(flush, GATHER_MS).unref()
    const line = most > GATHERED_BYTES ? Buffer.allocUnsafe(most) : gathered
    let at = line === gathered ? used : 0
    at += line.write(begin, at)
    at += line.write(String(Date.now()), at)
    at += line.write(source, at)
    if (members !== '{}') {
      const from = at
      // Its braces give way to the commas around its members.
      at += line.write(members, at) - 1
      line[from] = COMMA
    }
    at += line.write(',"msg":', at)
    at += line.write(end, at)
    at += line.write('}\n', at)
    if (line === gathered) used = at
    else {
      if (taken === sent) waitingSince = performance.now()
      sent += at
      send(line.subarray(0, at))
    }
    if (atOnce) flush()
  }
}

/** Returns a value as JSON. It never throws: what is not JSON becomes text. */
function jsonOf(value: string | (object & { err?: unknown })): string {
  let json: string
  try {
    json = JSON.stringify(
      typeof value === 'object' && value.err instanceof Error
        ? { ...value, err: serializedError(value.err) }
        : value,
    )
  } catch {
    json = JSON.stringify({ fields: inspect(value) })
  }
  return json.search(NOT_TEXT) < 0 ? json : json.replace(NOT_TEXT, escaped)
}

/** Escapes a character as JSON does, so that a JSON parser restores it. */
function escaped(character: string): string {
  let text = ''
  for (let i = 0; i < character.length; i++) {
    text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
  }
  return text
}

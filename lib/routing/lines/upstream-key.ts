import { createHash } from 'node:crypto'
import type { Line } from '../../core/catalog/index.ts'

/** Returns what of a line decides where its requests go and how they are let in, and when its circuits open. */
export function upstreamOf({ timeouts, ...line }: Line): object {
  const { protocol, origin, basePath, paths, query, apiKey, credential, sign, headers, proxy, tls, circuit } =
    line
  const access = [apiKey, credential, sign, headers, proxy, tls]
  return { protocol, origin, basePath, paths, query, access, connectMs: timeouts.connectMs, circuit }
}

const known = new WeakMap<Line, string>()

/** Returns a short text that is the same for lines with the same upstream, in all processes. It tells no secret. */
export function upstreamKey(line: Line): string {
  const key = known.get(line) ?? digest(JSON.stringify(upstreamOf(line), plain))
  known.set(line, key)
  return key
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}

function plain(_name: string, value: unknown): unknown {
  return value instanceof Map || value instanceof Set ? [...value] : value
}

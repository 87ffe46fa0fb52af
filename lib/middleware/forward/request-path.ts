import type { Request } from 'express'

/** The prefix of an endpoint's path, wherever the gateway is mounted. */
const VERSION_PREFIX = /^.*?\/(?:v1|api\/v3)(?=\/)/i

/**
 * Matches a segment that an upstream could resolve to another path: a dot segment, also with parameters (`..;a=b`), a
 * separator inside a segment, or the beginning of a query or fragment, each of them encoded once or more, or a control
 * character at which some parsers stop.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE_SEGMENT = /^\.{1,2}(?:;|$)|[/\\?#\x00-\x1f\x7f]|%(?:25)*(?:2e|2f|5c|3f|23)/i

/**
 * Returns the path of a request behind `/v1` or `/api/v3`, with its query, to be appended to a line's base URL.
 * Returns undefined if an upstream could resolve it to a path outside the matched rule: the line's key opens them
 * all.
 *
 * @param url the request's target as the caller sent it.
 */
export function relayPath(url: string): string | undefined {
  if (!url.startsWith('/') || /[#\\]/.test(url)) return undefined
  const query = url.indexOf('?')
  const path = query < 0 ? url : url.slice(0, query)
  if (path.split('/').some(isUnsafe)) return undefined
  return path.replace(VERSION_PREFIX, '') + (query < 0 ? '' : url.slice(query))
}

/**
 * Returns the address that the caller used, without the path that is passed on: up to `/v1` or `/api/v3`.
 *
 * @param path what {@link relayPath} returned for it.
 */
export function addressBefore(path: string, { protocol, host, originalUrl }: Request): string {
  return `${protocol}://${host}${originalUrl.slice(0, -path.length)}`
}

/** Returns the query of a path. */
export function queryOf(path: string): URLSearchParams {
  return new URLSearchParams(path.includes('?') ? path.slice(path.indexOf('?')) : '')
}

function isUnsafe(segment: string): boolean {
  try {
    return UNSAFE_SEGMENT.test(decodeURIComponent(segment))
  } catch {
    return true
  }
}

/** The paths below `/v1` at which known upstreams take the bytes of a file, of sound, or of a session description. */
const RAW_PATHS =
  /^\/(?:audio\/(?:transcriptions|translations)|files\/[^/]+\/content|listen|realtime(?:\/calls)?|uploads\/[^/]+\/parts)\/?$/i

/**
 * Whether a path takes raw bytes as its body.
 *
 * @param path the path behind `/v1`, with its query.
 */
export function takesRawBytes(path: string): boolean {
  return RAW_PATHS.test(path.replace(/\?.*/s, ''))
}

/** What stands before an endpoint's own path, wherever the gateway is mounted. */
const VERSION_PREFIX = /^.*?\/(?:v1|api\/v3)(?=\/)/i

/**
 * Steps to another place, as an upstream might read it: a dot segment, with parameters behind it too (`..;a=b`), a
 * separator inside a segment, either of them encoded more than once, or a character at which some stop reading.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const STEPS_ASIDE = /^\.{1,2}(?:;|$)|[/\\\x00-\x1f\x7f]|%(?:25)*(?:2e|2f|5c)/i

/**
 * The path of a request behind `/v1` or `/api/v3`, with its query: what a line's base URL is put in front of. Undefined
 * where an upstream could read another place in it than the rule that it matched: the line's key opens them all.
 *
 * @param url the request's target as the caller sent it.
 */
export function relayPath(url: string): string | undefined {
  if (!url.startsWith('/') || /[#\\]/.test(url)) return undefined
  const query = url.indexOf('?')
  const path = query < 0 ? url : url.slice(0, query)
  if (path.split('/').some(stepsAside)) return undefined
  return path.replace(VERSION_PREFIX, '') + (query < 0 ? '' : url.slice(query))
}

function stepsAside(segment: string): boolean {
  try {
    return STEPS_ASIDE.test(decodeURIComponent(segment))
  } catch {
    return true
  }
}

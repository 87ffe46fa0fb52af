import { isPrivateHost } from '../core/public-address/index.ts'

const MAX_LENGTH = 2000

/** Returns what is wrong with the address of a webhook. Names are checked again at each connection. */
export function webhookUrlFault(url: string, allowPrivate: boolean): string | undefined {
  const parsed = URL.parse(url)
  if (url.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`
  if (!parsed || !(allowPrivate ? /^https?:$/ : /^https:$/).test(parsed.protocol))
    return 'must be an https address'
  if (parsed.username !== '' || parsed.password !== '') return 'must not hold credentials'
  if (!allowPrivate && isPrivate(parsed.hostname)) return 'must be a public address'
  return undefined
}

function isPrivate(hostname: string): boolean {
  return isPrivateHost(hostname) || /(^|\.)localhost\.?$/.test(hostname)
}

import { parseJsonObject } from '../../json/index.ts'

/** The session that Claude Code adds to the name of its user. With it, each session would count as a user of its own. */
const SESSION = /_session_[0-9a-f-]{36}$/

/** Returns the name of a user without the session that Claude Code adds to it. */
export function personOf(name: string): string {
  return name.startsWith('{') ? withoutSession(name) : name.replace(SESSION, '')
}

/** Since version 2.1.78 Claude Code sends JSON. The name is the one of its earlier versions, so that a budget goes on. */
function withoutSession(name: string): string {
  const { device_id: device, account_uuid: account, session_id: session } = parseJsonObject(name) ?? {}
  if (typeof device !== 'string' || typeof session !== 'string') return name
  return `user_${device}_account_${typeof account === 'string' ? account : ''}`
}

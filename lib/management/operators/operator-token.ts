import { randomBytes } from 'node:crypto'

/** People, and scanners of leaked secrets, recognize the token by it. */
const PREFIX = 'operator-'
const TOKEN = /^operator-[\w-]{43}$/

export function newOperatorToken(): string {
  return `${PREFIX}${randomBytes(32).toString('base64url')}`
}

/** Whether a text has the form of an operator's token. Others need no look-up. */
export function isOperatorToken(text: string): boolean {
  return TOKEN.test(text)
}

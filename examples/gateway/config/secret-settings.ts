import type { Logger } from 'express-model-gateway'
import { readSecretFile } from 'express-model-gateway/config'

/** How long a secret counts before its file is read again. */
const FRESH_MS = 1000
const FILE = 'file:'

/** Returns a setting that may be `file:PATH`: what the file holds then, or what is wrong with it. */
export function readSetting(value: string): ReturnType<typeof readSecretFile> {
  return value.startsWith(FILE) ? readSecretFile(value.slice(FILE.length)) : { text: value }
}

/**
 * Returns a function that returns the value of a setting that may be `file:PATH`. A changed file counts from the next
 * second on; while it cannot be read, or is not valid, what it held before does.
 */
export function followSecret(
  name: string,
  value: string,
  logger: Logger,
  faultOf: (text: string) => string | undefined = () => undefined,
): () => string {
  if (!value.startsWith(FILE)) return () => value
  let text = ''
  let loggedFault: string | undefined
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - readAt < FRESH_MS) return text
    readAt = performance.now()
    const read = readSetting(value)
    const fault = 'text' in read ? faultOf(read.text) : read.fault
    if ('text' in read && fault === undefined) text = read.text
    else if (fault !== loggedFault)
      logger.error(
        { fault: `${name}: ${fault}` },
        'a secret cannot be used; the previous value stays in effect',
      )
    loggedFault = fault
    return text
  }
}

/** Returns the admin tokens that a setting holds. A file may hold several, one a line. */
export function adminTokensIn(text: string): readonly string[] {
  return text.split(/\s+/).filter((token) => token !== '')
}

/** The least length of a token that other machines can send, and of each token in a file: it gives access to all money. */
export const MIN_ADMIN_TOKEN = 16

/** Returns what is wrong with an `ADMIN_TOKEN`, which may be `file:PATH`. */
export function adminTokenFault(setting: string): string | undefined {
  if (!setting.startsWith(FILE))
    return isToken(setting) ? undefined : 'must be printable ASCII without spaces'
  const read = readSetting(setting)
  return 'text' in read ? adminTokensFault(read.text) : read.fault
}

/** Returns what is wrong with the admin tokens of a file. */
export function adminTokensFault(text: string): string | undefined {
  const isValid = adminTokensIn(text).every((token) => isToken(token) && token.length >= MIN_ADMIN_TOKEN)
  return isValid
    ? undefined
    : `the file must hold tokens of at least ${MIN_ADMIN_TOKEN} printable ASCII characters`
}

function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

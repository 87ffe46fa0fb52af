import type { Logger } from 'express-model-gateway'
import { readSecretFile } from 'express-model-gateway/config'

/** How long a secret counts before its file is read again. */
const FRESH_MS = 1000
const FILE = 'file:'

/** Returns a setting that may be `file:PATH`: what the file holds then, or what is wrong with it. */
function readSetting(value: string): ReturnType<typeof readSecretFile> {
  return value.startsWith(FILE) ? readSecretFile(value.slice(FILE.length)) : { text: value }
}

/** Returns the value of a secret variable, or of the file that it names. Undefined if it is not set, or cannot be read. */
export function secretIn(env: NodeJS.ProcessEnv, name: string, faults: string[]): string | undefined {
  const value = env[name]
  if (value === undefined) return undefined
  const read = readSetting(value)
  if ('text' in read) return read.text
  faults.push(`${name}: ${read.fault}`)
  return undefined
}

/** Returns what is wrong with a secret, which it does not tell. */
type FaultOf = (text: string) => string | undefined

/** Returns what is wrong with a setting that may be `file:PATH`. */
export function settingFault(value: string, faultOf: FaultOf): string | undefined {
  const read = readSetting(value)
  return 'text' in read ? faultOf(read.text) : read.fault
}

/**
 * Returns a function that returns the value of a setting that may be `file:PATH`. A changed file counts from the next
 * second on; while it cannot be read, or is not valid, what it held before does.
 */
export function followSecret(
  name: string,
  value: string,
  logger: Logger,
  faultOf: FaultOf = () => undefined,
): () => string {
  if (!value.startsWith(FILE)) return () => value
  let text = ''
  let toldOf: string | undefined
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - readAt < FRESH_MS) return text
    readAt = performance.now()
    const read = readSetting(value)
    const fault = 'text' in read ? faultOf(read.text) : read.fault
    if ('text' in read && fault === undefined) text = read.text
    else if (fault !== toldOf) logger.error({ fault: `${name}: ${fault}` }, 'a secret stays as it was')
    toldOf = fault
    return text
  }
}

/** Returns the admin tokens that a setting holds. A file may hold several, one a line. */
export function adminTokensIn(text: string): readonly string[] {
  return text.split(/\s+/).filter((token) => token !== '')
}

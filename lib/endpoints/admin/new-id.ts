import { randomBytes } from 'node:crypto'

/** Returns an id for a new object. */
export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`
}

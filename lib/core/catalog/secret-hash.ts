import { hash } from 'node:crypto'

/** The form in which a key's secret is stored and looked up: SHA-256, hexadecimal. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}

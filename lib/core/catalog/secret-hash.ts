import { hash } from 'node:crypto'

/** Returns the SHA-256 of a key's secret, hexadecimal. Stores hold and look up this hash, not the secret. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret)
}

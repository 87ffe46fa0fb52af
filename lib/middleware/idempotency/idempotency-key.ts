import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../../core/errors/index.ts'

const HEADER = 'Idempotency-Key'

const PRINTABLE = /^[\x20-\x7e]{1,255}$/

/**
 * Returns the request's key.
 *
 * @param value the header `Idempotency-Key`.
 * @throws {GatewayError} `invalid_request` when it is no key, or when there are several.
 */
export function readKey(req: IncomingMessage, value: string | string[]): string {
  const key = String(value)
  if (!PRINTABLE.test(key)) {
    throw new GatewayError('invalid_request', {
      param: HEADER,
      message: `The header ${HEADER} must hold 1 to 255 printable ASCII characters.`,
    })
  }
  // Node joins headers of the same name.
  if (key.includes(', ') && (req.headersDistinct['idempotency-key']?.length ?? 1) > 1) {
    throw new GatewayError('invalid_request', {
      param: HEADER,
      message: `The header ${HEADER} was sent more than once; send one key.`,
    })
  }
  return key
}

/** Returns the id of a key's record: one for each scope and endpoint. */
export function recordId(scope: string, method: string, path: string, key: string): string {
  return hash('sha256', JSON.stringify([scope, method, path, key]), 'base64url')
}

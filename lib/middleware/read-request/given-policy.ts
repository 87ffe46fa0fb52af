import type { UnsupportedPolicy } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'

/** Returns what the header `X-Gateway-Unsupported` asks for. */
export function givenPolicy(header: string | string[]): UnsupportedPolicy {
  const policy = String(header).trim().toLowerCase()
  if (policy === 'drop' || policy === 'refuse') return policy
  throw new GatewayError('invalid_request', {
    param: 'X-Gateway-Unsupported',
    message: 'The header X-Gateway-Unsupported must be "drop" or "refuse".',
  })
}

import type { Call } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { ResponseRegistry } from './response-registry.ts'

/** Returns the account whose responses a call may see. Without `authenticate`, all calls share one. */
export function accountOf({ principal }: Call): string {
  return principal?.accountId ?? ''
}

/** Returns the refusal of a call while the store of responses is away. */
export function refuseStoreAway(call: Call, error: unknown): GatewayError {
  return call.refuse('internal_error', {
    message:
      'Stored responses cannot be looked up or recorded at the moment. Retry, or send "store": false and the whole conversation as input.',
    cause: error,
    foreseen: error instanceof StoreAway,
  })
}

/** @throws TypeError if the option is not a registry. */
export function requireRegistry(owner: string, registry: unknown): void {
  if (!(registry instanceof ResponseRegistry))
    throw new TypeError(`${owner}: "registry" must be a ResponseRegistry, such as new ResponseRegistry()`)
}

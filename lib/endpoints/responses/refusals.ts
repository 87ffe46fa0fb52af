import type { Call } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { ResponseKeeper } from './response-keeper.ts'

/** Whose responses a call may see: its account's. Without accounts they are all of one. */
export function accountOf({ principal }: Call): string {
  return principal?.accountId ?? ''
}

/** Nobody knows which line has the response, or will know it. */
export function refuseUnchecked(call: Call, error: unknown): GatewayError {
  return call.refuse('internal_error', {
    message:
      'Stored responses cannot be looked up or noted at the moment. Retry, or send "store": false and the whole conversation as input.',
    cause: error,
    foreseen: error instanceof StoreAway,
  })
}

/** @throws TypeError where there is none. */
export function requireKeeper(name: string, keeper: unknown): void {
  if (!(keeper instanceof ResponseKeeper))
    throw new TypeError(`${name}: "keeper" must be a ResponseKeeper, such as new ResponseKeeper()`)
}

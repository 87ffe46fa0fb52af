import type { Request } from 'express'
import type { GatewayError } from '../errors/index.ts'
import type { Operation } from '../operations/index.ts'
import type { Call } from './call.ts'

/** A middleware that can tell before the body is read that it will refuse a call. */
export interface EarlyRefuser {
  /**
   * Returns the error that refuses the call whatever its body is, going by what this process knows already; undefined
   * if that depends on the body. Takes nothing of any limit or balance.
   */
  refuseEarly(
    req: Request,
    call: Call,
    operation: Operation,
  ): GatewayError | undefined | Promise<GatewayError | undefined>
}

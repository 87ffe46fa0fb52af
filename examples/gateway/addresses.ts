import type { AddressInfo } from 'node:net'

/** Where a gateway listens. */
export interface Addresses {
  readonly callers: AddressInfo
  /** Absent if operators have no port of their own. */
  readonly admin?: AddressInfo
}

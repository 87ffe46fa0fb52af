import type { AddressInfo } from 'node:net'

export interface Addresses {
  readonly callers: AddressInfo
  /** Absent if operators have no port of their own. */
  readonly admin?: AddressInfo
}

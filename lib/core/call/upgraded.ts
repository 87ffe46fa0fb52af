import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that the caller wants to continue in another protocol, such as WebSocket. */
export interface Upgrade {
  readonly socket: Socket
  /** The bytes that followed the head of the request. */
  readonly head: Buffer
}

/** The property of a request that has its {@link Upgrade}. */
export const UPGRADE = Symbol('express-model-gateway upgrade')

type UpgradeCarrier = IncomingMessage & { [UPGRADE]?: Upgrade }

/** Records that a request came by a server's `upgrade` event, so that its call answers on the socket. */
export function noteUpgrade(req: IncomingMessage, upgrade: Upgrade): void {
  ;(req as UpgradeCarrier)[UPGRADE] = upgrade
}

/** Returns the upgrade that a request asks for; undefined for an ordinary request. */
export function upgradeOf(req: IncomingMessage): Upgrade | undefined {
  return (req as UpgradeCarrier)[UPGRADE]
}

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that its caller wants to go on with in another protocol, such as WebSocket. */
export interface Upgrade {
  readonly socket: Socket
  /** What the caller has sent behind the head of its request. */
  readonly head: Buffer
}

/** Where a request keeps its {@link Upgrade}. */
export const UPGRADE = Symbol('express-model-gateway upgrade')

type UpgradeCarrier = IncomingMessage & { [UPGRADE]?: Upgrade }

/** Notes that a request came by a server's `upgrade` event: its call answers on the socket. */
export function noteUpgrade(req: IncomingMessage, upgrade: Upgrade): void {
  ;(req as UpgradeCarrier)[UPGRADE] = upgrade
}

/** What a request asks to be upgraded; undefined of an ordinary one. */
export function upgradeOf(req: IncomingMessage): Upgrade | undefined {
  return (req as UpgradeCarrier)[UPGRADE]
}

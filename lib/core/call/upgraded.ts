import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** A running WebSocket. Its relay or handler gives it to the {@link Upgrade}, so that a shutdown can close it. */
export interface UpgradedSession {
  /** How long nothing has been said, in milliseconds; 0 while something is on its way. */
  readonly idleMs: number
  /** Closes both sides, the caller's with a close frame. `reason` has at most 123 bytes. */
  close(code: number, reason: string): void
}

/** A connection that the caller wants to continue in another protocol, such as WebSocket. */
export interface Upgrade {
  readonly socket: Socket
  /** The bytes that followed the head of the request. */
  readonly head: Buffer
  /** The WebSocket that came of it. */
  session?: UpgradedSession
}

/** The property of a request that has its {@link Upgrade}. */
export const UPGRADE = Symbol.for('express-model-gateway upgrade')

type UpgradeCarrier = IncomingMessage & { [UPGRADE]?: Upgrade }

/** Records that a request came by a server's `upgrade` event, so that its call answers on the socket. */
export function noteUpgrade(req: IncomingMessage, upgrade: Upgrade): void {
  ;(req as UpgradeCarrier)[UPGRADE] = upgrade
}

/** Returns the upgrade that a request asks for; undefined for an ordinary request. */
export function upgradeOf(req: IncomingMessage): Upgrade | undefined {
  return (req as UpgradeCarrier)[UPGRADE]
}

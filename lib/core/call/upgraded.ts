import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that its caller wants to go on with in another protocol, such as WebSocket. */
export interface Upgrade {
  readonly socket: Socket
  /** What the caller has sent behind the head of its request. */
  readonly head: Buffer
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

/** Notes that a request came by a server's `upgrade` event: its call answers on the socket. */
export function noteUpgrade(req: IncomingMessage, upgrade: Upgrade): void {
  upgrades.set(req, upgrade)
}

/** What a request asks to be upgraded; undefined of an ordinary one. */
export function upgradeOf(req: IncomingMessage): Upgrade | undefined {
  return upgrades.get(req)
}

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A server of this machine, as it is reached from far away. */
export interface FarServer {
  readonly port: number
  /** Breaks all connections, and accepts none until {@link mend}. */
  cut(): void
  /** Delivers nothing until {@link mend}, as a network that loses all packets: connections stay open. */
  silence(): void
  mend(): void
  /** Breaks all connections, and passes new ones on to another port, as a name does that stands for another server now. */
  leadTo(port: number): void
  /** Has everything take this long from now on, as from a server that has become slow. */
  slowDown(roundTripMs: number): void
  close(): Promise<void>
}

/**
 * Passes a server's TCP connections on with a delay, each way half of the round trip.
 *
 * @param roundTripMs milliseconds from a question to its answer; a new connection takes as long once more.
 */
export async function farServer(to: number, roundTripMs: number): Promise<FarServer> {
  const open = new Set<Socket>()
  let isCut = false
  let isSilent = false
  /** The deliveries that wait while the network is silent. */
  const undelivered: (() => void)[] = []
  const deliver = (deed: () => void): void => {
    if (isSilent) undelivered.push(deed)
    else deed()
  }
  let target = to
  let delayMs = roundTripMs / 2
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(target, '127.0.0.1')
    for (const socket of [near.setNoDelay(), far.setNoDelay()]) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
    }
    passOn(near, far, { delayMs: () => delayMs, handshakeMs: roundTripMs, deliver })
    passOn(far, near, { delayMs: () => delayMs, handshakeMs: 0, deliver })
    const end = (): void => {
      open.delete(near)
      open.delete(far)
      near.destroy()
      far.destroy()
    }
    near.on('close', () => deliver(end))
    far.on('close', () => deliver(end))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const destroyAll = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      destroyAll()
    },
    silence() {
      isSilent = true
    },
    mend() {
      isCut = false
      isSilent = false
      for (const deed of undelivered.splice(0)) deed()
    },
    leadTo(port) {
      target = port
      destroyAll()
    },
    slowDown(ms) {
      delayMs = ms / 2
    },
    async close() {
      destroyAll()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Way {
  readonly delayMs: () => number
  /** The time that a new connection takes, in milliseconds. */
  readonly handshakeMs: number
  readonly deliver: (deed: () => void) => void
}

/** Writes what a socket receives to another one, that much later and in the same order. */
function passOn(from: Socket, to: Socket, { delayMs, handshakeMs, deliver }: Way): void {
  const opened = performance.now() + handshakeMs
  from.on('data', (chunk: Buffer) => {
    const wait = Math.max(opened - performance.now(), 0) + delayMs()
    const write = (): void => {
      if (!to.destroyed) to.write(chunk)
    }
    setTimeout(deliver, wait, write)
  })
  from.on('end', () => setTimeout(deliver, delayMs(), () => to.end()))
}

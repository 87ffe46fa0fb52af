import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A server of this machine, as it is reached from far away. */
export interface FarServer {
  readonly port: number
  /** Breaks all connections, and accepts none until {@link mend}. */
  cut(): void
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
    passOn(near, far, () => delayMs, roundTripMs)
    passOn(far, near, () => delayMs, 0)
    const end = (): void => {
      open.delete(near)
      open.delete(far)
      near.destroy()
      far.destroy()
    }
    near.on('close', end)
    far.on('close', end)
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
    mend() {
      isCut = false
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

/** Writes what a socket receives to another one, that much later and in the same order. */
function passOn(from: Socket, to: Socket, delayMs: () => number, handshakeMs: number): void {
  const opened = performance.now() + handshakeMs
  from.on('data', (chunk: Buffer) => {
    const wait = Math.max(opened - performance.now(), 0) + delayMs()
    setTimeout(() => {
      if (!to.destroyed) to.write(chunk)
    }, wait)
  })
  from.on('end', () => setTimeout(() => to.end(), delayMs()))
}

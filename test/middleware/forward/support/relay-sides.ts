import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { TestContext } from 'node:test'
import type { ProxiedExchange } from '../../../../lib/middleware/forward/proxied-exchange.ts'
import { RelayedSocket } from '../../../../lib/middleware/forward/relayed-socket.ts'
import type { Failure } from '../../../../lib/routing/attempt/failure.ts'

/** Waits until what has happened is known to all. */
export const turn = () => new Promise((resolve) => setImmediate(resolve))

/** One side of a relay, which a test speaks for. */
export class Side extends Duplex {
  readonly heard: Buffer[] = []
  readonly errors: Error[] = []
  /** Whether it takes what is written to it. */
  takes = true
  /** The settings that were made on the socket. */
  readonly settings: unknown[][] = []
  #taken: (() => void) | undefined

  constructor(closesItself: boolean) {
    super({ autoDestroy: closesItself, read() {} })
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.heard.push(bytes)
    if (this.takes) done()
    else this.#taken = done
  }

  takeAll(): void {
    this.takes = true
    this.#taken?.()
  }

  get text(): string {
    return Buffer.concat(this.heard).toString('latin1')
  }

  setTimeout = (...args: unknown[]) => void this.settings.push(['timeout', ...args])
  setNoDelay = (...args: unknown[]) => void this.settings.push(['noDelay', ...args])
  setKeepAlive = (...args: unknown[]) => void this.settings.push(['keepAlive', ...args])
}

interface Relaying {
  handshake?: string
  head?: string
  /** Whether the sides close once they have ended. */
  closesItself?: boolean
  /** Called before it is relayed. */
  before?: (sides: { caller: Side; line: Side }) => void
}

/** A relay on a clock that the test sets. */
export async function relayed(
  t: TestContext,
  { handshake = '', head = '', closesItself = true, before }: Relaying = {},
) {
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const [caller, line] = [new Side(closesItself), new Side(closesItself)]
  for (const side of [caller, line]) side.on('error', (error) => void side.errors.push(error))
  before?.({ caller, line })
  await turn()
  const over = Promise.withResolvers<void>()
  const ends: (Failure | 'complete' | 'relaying')[] = []
  const exchange = {
    ended: over.promise,
    relaying: () => void ends.push('relaying'),
    complete: () => void ends.push('complete'),
    breakOff: (failure: Failure) => void ends.push(failure),
  } as unknown as ProxiedExchange
  const session = new RelayedSocket(exchange, { socket: caller as unknown as Socket } as never, line)
  let isOver = false
  const relaying = session.relay(handshake, Buffer.from(head)).then(() => {
    isOver = true
  })
  t.after(async () => {
    for (const side of [caller, line]) side.destroy()
    over.resolve()
    await relaying
    // The clocks end with their sides, before those of the next test are set.
    await turn()
  })
  await turn()
  return {
    ...{ session, caller, line, over, relaying },
    ends: () => ends.slice(1),
    begun: () => ends[0],
    isOver: () => isOver,
    async pass(ms: number): Promise<void> {
      now += ms
      t.mock.timers.tick(ms)
      await turn()
    },
    async say(side: Side, bytes: Buffer | string | null): Promise<void> {
      side.push(bytes)
      await turn()
      await turn()
    },
  }
}

import { Client, type Dispatcher, Pool } from 'undici'
import type { Line } from '../../core/catalog/index.ts'

/** How long an idle connection is kept; providers keep theirs longer. */
const KEEP_ALIVE_MS = 30_000

/** A connection that counts the requests it has carried. */
export interface CountingConnection {
  carried: number
}

/** A handler that the pool gives the connection that serves it. */
export interface ConnectionAware extends Dispatcher.DispatchHandler {
  connection: CountingConnection | undefined
  /** @param controller null if nothing was sent. */
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void
}

class CountingClient extends Client implements CountingConnection {
  carried = 0

  constructor(...args: ConstructorParameters<typeof Client>) {
    super(...args)
    this.on('connect', () => {
      this.carried = 0
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    ;(handler as ConnectionAware).connection = this
    return super.dispatch(options, handler)
  }
}

/** Sends requests. */
export interface Wire {
  /** Sends over a connection that may have been kept alive. */
  dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void
  /** Sends over a new connection, which is closed afterwards. */
  dispatchFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void
}

/** The connections to one line. */
export class UpstreamPool implements Wire {
  readonly #origin: string
  readonly #options: Client.Options
  readonly #pool: Pool
  #retired = false

  constructor(line: Line) {
    this.#origin = line.origin
    this.#options = {
      allowH2: false,
      pipelining: 1,
      // The clocks of the attempt apply instead; undici's would end a long answer.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connect: { timeout: line.timeouts.connectMs },
    }
    this.#pool = new Pool(this.#origin, {
      ...this.#options,
      factory: (origin, options) => new CountingClient(origin, options as Client.Options),
    })
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    if (this.#retired) this.dispatchFresh(options, handler)
    else this.#pool.dispatch(options, handler)
  }

  dispatchFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    const client = new CountingClient(this.#origin, this.#options)
    client.dispatch(options, handler)
    void client.close()
  }

  /**
   * Ends idle connections, and each other one after its answer; resolves when all have ended. A call that already
   * chose this line is still sent, over a new connection.
   */
  async retire(): Promise<void> {
    this.#retired = true
    await this.#pool.close()
  }

  /** Ends all connections, those in use included. */
  async close(): Promise<void> {
    await this.#pool.destroy()
  }
}

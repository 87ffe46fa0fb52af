import { buildConnector, type Client, type Dispatcher, Pool } from 'undici'
import type { Line } from '../../core/catalog/index.ts'
import { type ConnectionAware, UpstreamConnection } from './upstream-connection.ts'

/** How long an idle connection is kept; providers keep theirs longer. */
const KEEP_ALIVE_MS = 30_000

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
  readonly #connect: buildConnector.connector
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
    }
    this.#connect = buildConnector({ timeout: line.timeouts.connectMs, allowH2: false })
    this.#pool = new Pool(this.#origin, {
      ...this.#options,
      factory: () => new UpstreamConnection(this.#origin, this.#options, this.#connect),
    })
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    if (this.#retired) this.dispatchFresh(options, handler)
    else this.#pool.dispatch(options, handler)
  }

  dispatchFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    const client = new UpstreamConnection(this.#origin, this.#options, this.#connect)
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

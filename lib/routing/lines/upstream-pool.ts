import type { Client, Dispatcher, Pool } from 'undici'
import type { Line } from '../../core/catalog/index.ts'
import { connectorOf } from './line-connect.ts'
import type * as Connections from './upstream-connection.ts'
import type { ConnectionAware, UpstreamConnection } from './upstream-connection.ts'

/** How long an idle connection is kept; providers keep theirs longer. */
const KEEP_ALIVE_MS = 30_000

/** Sends requests. */
export interface Transport {
  /** Sends over a connection that may have been kept alive. */
  dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void
  /** Sends over a new connection, which is closed afterwards. */
  dispatchFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void
  /** Whether a request that was refused with 401 is to be sent once more, because it will be signed anew. */
  signsAnew?(handler: ConnectionAware): boolean
}

let connections: typeof Connections | undefined

/** Loads undici. It takes as long as all the rest, so importing this package does not load it. */
export async function loadUndici(): Promise<typeof Connections> {
  connections ??= await import('./upstream-connection.ts')
  return connections
}

/** The connections to one line. They can be used at once; a request that comes before undici is loaded waits for it. */
export class UpstreamPool implements Transport {
  readonly #line: Line
  #pool: Pool | undefined
  #connect: (() => UpstreamConnection) | undefined
  #retired = false
  readonly #opened: Promise<void>

  /** Once undici is loaded, that of its pool; {@link dispatchFresh} from when this one retires. */
  dispatch: Transport['dispatch'] = (options, handler) => this.#onceOpen('dispatch', options, handler)

  constructor(line: Line) {
    this.#line = line
    if (connections) this.#open(connections)
    this.#opened = connections ? Promise.resolve() : loadUndici().then((loaded) => this.#open(loaded))
    this.#opened.catch(() => {})
  }

  #open({ buildConnector, Pool, UpstreamConnection }: typeof Connections): void {
    const { origin } = this.#line
    const options: Client.Options = {
      allowH2: false,
      pipelining: 1,
      // The clocks of the attempt apply instead; undici's would end a long answer.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
    }
    const connector = connectorOf(this.#line, buildConnector)
    this.#connect = () => new UpstreamConnection(origin, options, connector)
    const pool = new Pool(origin, { ...options, factory: this.#connect })
    this.#pool = pool
    if (!this.#retired) this.dispatch = pool.dispatch.bind(pool)
  }

  /** How many are open, but for those of one request only. */
  get connections(): number {
    return this.#pool?.stats.connected ?? 0
  }

  dispatchFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    if (!this.#connect) {
      this.#onceOpen('dispatchFresh', options, handler)
      return
    }
    const client = this.#connect()
    client.dispatch(options, handler)
    void client.close()
  }

  #onceOpen(
    how: 'dispatch' | 'dispatchFresh',
    options: Dispatcher.DispatchOptions,
    handler: ConnectionAware,
  ): void {
    this.#opened
      .then(() => this[how](options, handler))
      .catch((error: Error) => handler.onResponseError(null, error))
  }

  /**
   * Ends idle connections, and each other one after its answer; resolves when all have ended. A call that already
   * chose this line is still sent, over a new connection.
   */
  async retire(): Promise<void> {
    this.#retired = true
    this.dispatch = this.dispatchFresh
    await this.#opened
    await this.#pool?.close()
  }

  /** Ends all connections, those in use included. */
  async close(): Promise<void> {
    await this.#opened
    await this.#pool?.destroy()
  }
}

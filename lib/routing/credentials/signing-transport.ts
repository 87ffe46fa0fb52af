import type { Dispatcher } from 'undici'
import type { Line } from '../../core/catalog/index.ts'
import { within } from '../../core/timing/index.ts'
import { UnsentError } from '../attempt/failure.ts'
import type { ConnectionAware } from '../lines/upstream-connection.ts'
import type { Transport } from '../lines/upstream-pool.ts'
import type { LineSigner, SignedHeaders } from './signer.ts'

/**
 * How long before the connect clock a signature is given up, as a share of that clock and at most. The clock must not come
 * first, also where the process is held up: its error does not name what the request waited for.
 */
const BEFORE_CLOCK = { share: 0.2, maxMs: 1000 }

/** The members of a line that a signature waits for. */
type SignedLine = Pick<Line, 'origin' | 'timeouts'>

/** Returns what a signer makes of a request, within the connect clock of its line. Rejects with an `UnsentError`. */
export async function signedInTime(
  signer: LineSigner,
  { timeouts }: SignedLine,
  request: Parameters<LineSigner['sign']>[0],
): Promise<SignedHeaders> {
  const signed = signer.sign(request)
  if (!(signed instanceof Promise)) return signed
  const { connectMs } = timeouts
  const limitMs = connectMs - Math.min(BEFORE_CLOCK.maxMs, connectMs * BEFORE_CLOCK.share)
  return within(limitMs, signed, () => {
    throw new UnsentError('the credential of the line took too long', true)
  })
}

/** Signs each request to a line before it goes out. What that takes, and how it fails, is the attempt's alone. */
export class SigningTransport implements Transport {
  readonly #transport: Transport
  readonly #signer: LineSigner
  readonly #line: SignedLine
  /** The headers that each exchange was signed with, and whether it was signed anew. */
  readonly #sent = new WeakMap<ConnectionAware, { readonly headers: SignedHeaders; readonly anew: boolean }>()

  constructor(transport: Transport, signer: LineSigner, line: SignedLine) {
    this.#transport = transport
    this.#signer = signer
    this.#line = line
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    this.#send('dispatch', options, handler)
  }

  dispatchFresh(options: Dispatcher.DispatchOptions, handler: ConnectionAware): void {
    this.#send('dispatchFresh', options, handler)
  }

  /** A line that refuses what it was sent gets something fresh, once. It has done nothing yet. */
  signsAnew(handler: ConnectionAware): boolean {
    const sent = this.#sent.get(handler)
    if (!sent || sent.anew || !this.#signer.refused) return false
    this.#signer.refused(sent.headers)
    this.#sent.set(handler, { ...sent, anew: true })
    return true
  }

  #send(
    how: 'dispatch' | 'dispatchFresh',
    options: Dispatcher.DispatchOptions,
    handler: ConnectionAware,
  ): void {
    this.#signed(options, handler)
      .then((signed) => this.#transport[how](signed, handler))
      .catch((error: Error) => handler.onResponseError(null, error))
  }

  async #signed(
    options: Dispatcher.DispatchOptions,
    handler: ConnectionAware,
  ): Promise<Dispatcher.DispatchOptions> {
    const { method, path, headers, body } = options
    const given = pairsOf(headers as readonly string[] | Record<string, string>)
    const signed = await signedInTime(this.#signer, this.#line, {
      method,
      url: this.#line.origin + path,
      headers: given,
      body: Buffer.isBuffer(body) ? body : undefined,
    })
    this.#sent.set(handler, { headers: signed, anew: this.#sent.get(handler)?.anew ?? false })
    return { ...options, headers: { ...given, ...signed } }
  }
}

function pairsOf(headers: readonly string[] | Record<string, string>): Record<string, string> {
  if (!Array.isArray(headers)) return headers as Record<string, string>
  const pairs: Record<string, string> = {}
  for (let i = 0; i + 1 < headers.length; i += 2) pairs[headers[i]] = headers[i + 1]
  return pairs
}

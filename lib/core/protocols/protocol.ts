import type { GatewayError } from '../errors/index.ts'

/** A wire protocol: of an inbound path, and of an upstream line. */
export type ProtocolName = 'openai' | 'anthropic' | 'ark'

/**
 * What one inbound protocol does in its own way: wording an error, framing one inside a stream, naming the request id.
 * Adding a protocol is a file with one of these and a row in `PROTOCOLS`.
 */
export interface Protocol {
  readonly name: ProtocolName
  /** Headers that carry the request id on every response. */
  readonly requestIdHeaders: readonly string[]
  /** The error body (spec 2.1, 2.2). */
  errorBody(error: GatewayError, requestId: string): object
  /**
   * The event that ends a stream which failed after its first byte, as the bytes to write.
   *
   * @param eventNumber its number, where the stream's events are numbered.
   */
  streamError(error: GatewayError, requestId: string, eventNumber?: number): string
}

import type { GatewayError } from '../errors/index.ts'

/** The name of a wire protocol. Callers' paths and lines have one each. */
export type ProtocolName = 'openai' | 'anthropic' | 'ark'

/** How the callers of one protocol get errors and the request id. To add a protocol, add a row to `PROTOCOLS`. */
export interface Protocol {
  readonly name: ProtocolName
  /** Headers that carry the request id on every response. */
  readonly requestIdHeaders: readonly string[]
  /** Returns the body of an error. */
  errorBody(error: GatewayError, requestId: string): object
  /**
   * Returns the event that ends a stream which failed after its first byte.
   *
   * @param eventNumber the number of the event, if the stream numbers its events.
   */
  streamError(error: GatewayError, requestId: string, eventNumber?: number): string
}

import { GatewayError } from '../errors/index.ts'

/** A body may come in so many pieces, whatever their size; in more only if they hold so many bytes each, on average. */
const FREE_PIECES = 4096
const MIN_PIECE_BYTES = 32

/** Counts the pieces of a body: each takes a microsecond or more of everybody's time. */
export class PieceCount {
  #pieces = 0
  #bytes = 0

  /** Counts a piece. Returns the refusal of a body that comes in too many. */
  add(bytes: number): GatewayError | undefined {
    this.#bytes += bytes
    if (++this.#pieces <= FREE_PIECES || this.#bytes >= this.#pieces * MIN_PIECE_BYTES) return undefined
    return new GatewayError('invalid_request', {
      message: `The body comes in too many pieces. Send at least ${MIN_PIECE_BYTES} bytes in each chunk.`,
    })
  }
}

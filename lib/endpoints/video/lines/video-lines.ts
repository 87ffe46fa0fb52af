import type { AttemptNote, Call, ChosenLine, LineSender, RoutingTrace } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import type { GatewayError } from '../../../core/errors/index.ts'
import type { CreateOutcome } from '../tasks/line-client.ts'

/** A create that is offered to one line after another. */
export interface CreateOffer {
  /** Why it cannot be put to this line at all; undefined where it can. */
  unfit(line: Line): GatewayError | undefined
  /**
   * Puts it to a line.
   *
   * @param ahead all lines that may be tried.
   */
  put(chosen: ChosenLine, send: LineSender, ahead: readonly ChosenLine[]): Promise<CreateOutcome>
}

/** The lines as this slice needs them; what `LineAccess` of `route` is. */
export interface VideoLines {
  /** A line by its id; undefined where the config has none. */
  line(id: string): Line | undefined
  /** What sends requests to that line, and to no other; `note` is told of each. */
  senderTo(line: Line, note?: AttemptNote): LineSender
  /** The trace of a call that can go to one line and no other. */
  pinnedTrace(): RoutingTrace
  /** Where something of a line is to be had, and the headers that it wants, names and values in turn. */
  address(line: Line, path: string): { readonly url: string; readonly headers: readonly string[] }
  /**
   * Offers a create to the candidate lines of a call until one has it, or may have it.
   *
   * @throws {GatewayError} the verdict where no line has it.
   */
  place(call: Call, offer: CreateOffer): Promise<{ chosen: ChosenLine; outcome: CreateOutcome }>
}

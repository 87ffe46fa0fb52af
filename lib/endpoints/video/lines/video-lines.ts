import type { AttemptNote, Call, ChosenLine, LineSender, RoutingTrace } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import type { GatewayError } from '../../../core/errors/index.ts'
import type { Wire } from '../../../routing/lines/upstream-pool.ts'
import type { CreateOutcome } from '../tasks/line-client.ts'

/** A create that is offered to one line after another. */
export interface CreateOffer {
  /** Returns why a line cannot get the create; undefined if it can. */
  unfit(line: Line): GatewayError | undefined
  /**
   * Sends the create to a line.
   *
   * @param ahead all lines that may be tried.
   */
  put(chosen: ChosenLine, send: LineSender, ahead: readonly ChosenLine[]): Promise<CreateOutcome>
}

/** The access to lines that the video endpoints need. `LineAccess` of `route` has it. */
export interface VideoLines {
  /** Returns a line by its id; undefined if the config has none. */
  line(id: string): Line | undefined
  /** Returns a sender to one line; `note` receives the record of each exchange. */
  senderTo(line: Line, note?: AttemptNote): LineSender
  /** Returns the trace of a call that can go to one line only. */
  pinnedTrace(): RoutingTrace
  /** Returns the address of a path on a line, and the headers that the line needs: names and values in turn. */
  address(line: Line, path: string): { readonly url: string; readonly headers: readonly string[] }
  /** Returns what sends requests to a line, with the credentials that `address` cannot tell. */
  wireTo(line: Line): Wire
  /**
   * Offers a create to the candidates of a call until a line accepts it or may have accepted it.
   *
   * @throws {GatewayError} the verdict if no line accepted it.
   */
  place(call: Call, offer: CreateOffer): Promise<{ chosen: ChosenLine; outcome: CreateOutcome }>
}

import type { Fault } from '../attempt/failure.ts'
import type { Ticket } from './circuit.ts'
import type { LineState, ModelState } from './line-state.ts'

/** An attempt's permission to go through the circuits of its line and model, and the means to report its result. */
export class AttemptPass {
  readonly #line: LineState
  readonly #model: ModelState
  readonly #account: string
  readonly #lineTicket: Ticket
  readonly #modelTicket: Ticket
  #reported: 'nothing' | 'success' | 'all' = 'nothing'

  /** Both circuits must admit the account. */
  constructor(line: LineState, model: ModelState, account: string) {
    this.#line = line
    this.#model = model
    this.#account = account
    this.#lineTicket = line.circuit.enter(account)
    this.#modelTicket = model.circuit.enter(account)
  }

  /** Reports that the line answered well, up to its first output. */
  success(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'success'
    this.#line.circuit.succeed(this.#lineTicket)
    this.#model.circuit.succeed(this.#modelTicket)
    this.#model.answered()
  }

  /** Reports that the line failed. After a success it means that the answer broke off. */
  failure(fault: Fault): void {
    const reported = this.#reported
    if (reported === 'all') return
    this.#reported = 'all'
    const { circuit } = this.#model
    if (reported === 'success') circuit.failLate(this.#modelTicket, this.#account)
    else if (fault === 'line') {
      this.#line.circuit.fail(this.#lineTicket, this.#account)
      circuit.skip(this.#modelTicket)
    } else {
      // It could be reached, and takes our key.
      this.#line.circuit.succeed(this.#lineTicket)
      circuit.fail(this.#modelTicket, this.#account)
    }
  }

  /** Reports that the line refused because of the request or its own limits: no verdict on the model. */
  refused(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'all'
    this.#line.circuit.succeed(this.#lineTicket)
    this.#model.circuit.skip(this.#modelTicket)
  }

  /** Reports that there is no verdict: the caller left. */
  abandon(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'all'
    this.#line.circuit.skip(this.#lineTicket)
    this.#model.circuit.skip(this.#modelTicket)
  }
}

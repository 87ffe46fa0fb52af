import type { Query } from '../api.ts'
import { type Call, callsPath, listCalls } from '../calls.ts'
import { fill, h } from '../element.ts'
import { isLeaving, type ViewContext } from '../view.ts'
import { announce } from './announcer.ts'
import { callColumns } from './call-columns.ts'
import { listing } from './listing.ts'
import { LiveRows } from './live-rows.ts'

const PAGE = 50
const POLL_MS = 2000

/** Shows a list of calls, page by page or live. Live, new calls appear at the top until you pause it. */
export class LiveCalls {
  readonly element: HTMLElement = h('div', { class: 'stack' })
  readonly controls: HTMLElement
  readonly #context: ViewContext
  readonly #filters: Query
  readonly #button: HTMLButtonElement
  readonly #state = h('span', { class: 'live-state' })
  #live = false
  #rows: LiveRows<Call> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(context: ViewContext, filters: Query) {
    this.#context = context
    this.#filters = filters
    this.#button = h('button', { type: 'button', click: () => this.#toggle() }, 'Go live')
    this.controls = h('div', { class: 'buttons' }, this.#state, this.#button)
    context.signal.addEventListener('abort', () => clearTimeout(this.#timer))
    this.#showPages()
  }

  #showPages(): void {
    const { session } = this.#context
    const list = { what: 'calls', path: callsPath(session), query: this.#filters }
    fill(this.element, listing(this.#context, { ...list, columns: callColumns(session) }))
  }

  #toggle(): void {
    this.#live = !this.#live
    fill(this.#button, this.#live ? 'Pause' : 'Go live')
    announce(this.#live ? 'Live: new calls come in at the top.' : 'Paused.')
    clearTimeout(this.#timer)
    if (this.#live) void this.#poll()
    else fill(this.#state, 'Paused')
  }

  async #poll(): Promise<void> {
    try {
      // A hidden page need not be updated.
      if (!document.hidden) await this.#askForMore()
      fill(this.#state, h('span', { class: 'pulse' }), `Live, every ${POLL_MS / 1000} s`)
    } catch (error) {
      if (isLeaving(error)) return
      fill(this.#state, error instanceof Error ? error.message : String(error))
    }
    if (this.#live && !this.#context.signal.aborted)
      this.#timer = setTimeout(() => void this.#poll(), POLL_MS)
  }

  async #askForMore(): Promise<void> {
    const { data } = await listCalls(this.#context, { ...this.#filters, limit: PAGE })
    if (!this.#live) return
    if (!this.#rows) {
      this.#rows = new LiveRows('Calls', callColumns(this.#context.session))
      fill(this.element, this.#rows.element)
    } else if (!this.element.contains(this.#rows.element)) fill(this.element, this.#rows.element)
    const added = this.#rows.add(data)
    if (added > 0) announce(`${added} calls came in.`)
  }
}

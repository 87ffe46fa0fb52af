import { h } from '../element.ts'

/** The kind of a state, shown by colour, by the form of the mark, and always by a word. */
export type Tone = 'good' | 'warn' | 'bad' | 'off'

/** Shows a state as a word with a mark. A long code may go on in the next line behind each underscore. */
export function badge(tone: Tone, text: string): HTMLElement {
  const parts = text.split(/(?<=_)/).map((part, i) => [i > 0 && h('wbr'), part])
  return h('span', { class: `badge badge-${tone}` }, h('span', {}, parts))
}

export interface CallEnd {
  readonly status: number
  readonly error_code: string | null
  readonly outcome: string
}

/** Shows the status of a call with its error code, or with its outcome if there is none. */
export function callStatus({ status, error_code: code, outcome }: CallEnd): HTMLElement {
  const text = code ?? (outcome === 'completed' ? 'completed' : outcome)
  return badge(toneOf(status, outcome), `${status === 0 ? '' : `${status} `}${text}`)
}

function toneOf(status: number, outcome: string): Tone {
  if (outcome === 'completed' && status < 400) return 'good'
  // The gateway refused the call, or the caller left: neither is a failure.
  if (status < 500 || outcome === 'interrupted') return 'warn'
  return 'bad'
}

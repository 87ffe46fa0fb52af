import { h } from '../element.ts'

/** How good it is: told by colour, by the form of the mark, and always by words. */
export type Tone = 'good' | 'warn' | 'bad' | 'off'

/** A state in a word, with a mark. */
export function badge(tone: Tone, text: string): HTMLElement {
  return h('span', { class: `badge badge-${tone}` }, text)
}

/** How a call ended. */
export interface CallEnd {
  readonly status: number
  readonly error_code: string | null
  readonly outcome: string
}

/** The status of a call with its error code, or with what became of it where there is none. */
export function callStatus({ status, error_code: code, outcome }: CallEnd): HTMLElement {
  const text = code ?? (outcome === 'completed' ? 'completed' : outcome)
  return badge(toneOf(status, outcome), `${status === 0 ? '' : `${status} `}${text}`)
}

function toneOf(status: number, outcome: string): Tone {
  if (outcome === 'completed' && status < 400) return 'good'
  // The gateway said no, as it should, or the caller left: nothing is broken.
  if (status < 500 || outcome === 'interrupted') return 'warn'
  return 'bad'
}

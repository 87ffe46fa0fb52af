import { type Child, h } from '../element.ts'
import { notice } from './notice.ts'
import { badge } from './status.ts'

/** An answer of the API about settings, with what they name that does not exist. */
export interface Warned {
  readonly warnings?: readonly string[]
}

/** Shows the warnings of an answer, if there are any. */
export function warningsNotice({ warnings = [] }: Warned): Child {
  if (warnings.length === 0) return null
  const items = warnings.map((text) => h('li', {}, text))
  return notice(
    'warn',
    h('p', {}, 'The settings refer to models, lines or regions that do not exist:'),
    h('ul', {}, items),
  )
}

/** Marks a row of a list whose settings have warnings, which its page shows. */
export function warningsBadge({ warnings = [] }: Warned): Child {
  if (warnings.length === 0) return null
  return h(
    'div',
    { title: warnings.join('\n') },
    badge('warn', warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`),
  )
}

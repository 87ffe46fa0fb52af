import { type Child, h } from '../element.ts'
import { linkTo, linkWith } from '../router.ts'
import { may, type Role, type Session } from '../session.ts'

/** The views of what has a page of its own, by kind. Those without one are filters of the calls. */
const PAGES: Readonly<Record<string, string>> = {
  account: 'accounts',
  budget: 'budgets',
  call: 'calls',
  key: 'keys',
  model: 'models',
  ticket: 'tickets',
  video: 'videos',
  video_task: 'videos',
  webhook: 'webhooks',
}

/** The roles that pages need, beside reading. */
const NEEDS: Readonly<Record<string, Role>> = { ticket: 'support', webhook: 'admin' }

/** The kinds that calls can be filtered by. */
const FILTERS: readonly string[] = ['key', 'line', 'user']
/** The kinds whose pages and filters holders of keys have. */
const PAGES_OF_KEYS: readonly string[] = ['call', 'model', 'ticket']
const FILTERS_OF_KEYS: readonly string[] = ['key', 'user']

/** Links an id to its page, or to its calls if it has none; just its text where the user has neither. */
export function recordLink(
  session: Session,
  kind: string,
  id: string | null | undefined,
  range: Readonly<Record<string, string>> = {},
): Child {
  if (id === null || id === undefined || id === '') return null
  const operator = session.kind === 'admin'
  const isOpen = operator ? may(session, NEEDS[kind] ?? 'viewer') : PAGES_OF_KEYS.includes(kind)
  const page = isOpen ? PAGES[kind] : undefined
  if (page) return h('a', { href: linkTo(page, id) }, id)
  if ((operator ? FILTERS : FILTERS_OF_KEYS).includes(kind))
    return h('a', { href: linkWith('calls', { [kind]: id, ...range }) }, id)
  return id
}

/** Links what an event or a wallet is of, such as `account:acme`. */
export function subjectLink(session: Session, subject: string): Child {
  const [kind = '', ...rest] = subject.split(':')
  // The wallet of a budget has the beginning of its period behind its id.
  const id = kind === 'budget' ? rest[0] : rest.join(':')
  return [`${kind} `, recordLink(session, kind, id)]
}

export function callLink(id: string): HTMLElement {
  return h('a', { href: linkTo('calls', id), class: 'mono' }, id)
}

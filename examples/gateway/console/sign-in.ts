import type { OwnSessionAnswer } from 'express-model-gateway/admin'
import { Api } from './api.ts'
import { fill, h } from './element.ts'
import { field, form } from './parts/form.ts'
import { faultNotice, notice } from './parts/notice.ts'
import { keepSession, type Session } from './session.ts'

/** Why the gateway signed nobody in, by the word behind `?refused=`. */
const REFUSALS: Readonly<Record<string, string>> = {
  no_role: 'You are known, but have no role here. Ask whoever runs the gateway for one.',
  away: 'The sign-in service does not answer. Try again in a moment, or use a token.',
  failed: 'Signing in did not succeed. Try again.',
  slow_down: 'There were too many failed attempts from your address. Wait a minute.',
}

/**
 * Shows the sign-in page. A credential is checked before it is stored.
 *
 * @param refused why the previous session ended, unless the user ended it.
 */
export function signIn(refused: unknown, done: () => void): { element: HTMLElement; heading: HTMLElement } {
  const heading = h('h1', { tabindex: -1 }, 'Gateway console')
  const act = async ({ kind, secret = '' }: Readonly<Record<string, string>>) => {
    if (secret === '') return notice('bad', 'Type in your key or token.')
    keepSession(await sessionOf(kind === 'admin' ? 'admin' : 'key', secret))
    done()
  }
  const entry = form({
    label: 'Sign in',
    submit: 'Sign in',
    act,
    fields: [
      h(
        'fieldset',
        { class: 'kinds' },
        h('legend', {}, 'Sign in with'),
        kindChoice('key', 'an API key', 'your account: its calls, money and models', true),
        kindChoice('admin', 'the admin token', "or an operator's own, for those who run the service", false),
      ),
      field({
        name: 'secret',
        label: 'Key or token',
        hint: 'Kept in this tab until you sign out or close it, and sent to this gateway only.',
        attributes: { type: 'password', autocomplete: 'off', spellcheck: 'false', autofocus: true },
      }),
    ],
  })
  const provider = h('div', {})
  void offerProvider(provider, refused === undefined, done)
  return {
    element: h('main', { class: 'way-in', id: 'main' }, heading, reasonOf(refused), provider, entry),
    heading,
  }
}

/** Returns why nobody is signed in, if there is a reason, and takes it out of the page's address. */
function reasonOf(refused: unknown): HTMLElement | null {
  const word = new URLSearchParams(location.search).get('refused')
  if (word !== null) history.replaceState(null, '', `${location.pathname}${location.hash}`)
  if (refused !== undefined) return faultNotice(refused)
  const text = word !== null && Object.hasOwn(REFUSALS, word) ? REFUSALS[word] : undefined
  return text === undefined ? null : notice('bad', text)
}

/** Offers to sign in at the provider, if there is one; signs in at once whoever has done so before, in any tab. */
async function offerProvider(place: HTMLElement, resume: boolean, done: () => void): Promise<void> {
  const api = new Api({ secret: null })
  const { name } = await api
    .get<{ name: string | null }>('console/sign-in/provider')
    .catch(() => ({ name: null }))
  if (name === null) return
  fill(place, h('a', { class: 'button', href: 'console/sign-in' }, `Sign in with ${name}`))
  if (!resume) return
  const session = await sessionOf('admin', null).catch(() => undefined)
  if (session && place.isConnected) {
    keepSession(session)
    done()
  }
}

/** Returns the session that a credential makes; rejects if it is not valid. */
async function sessionOf(kind: Session['kind'], secret: string | null): Promise<Session> {
  const api = new Api({ secret })
  if (kind === 'admin') {
    const { name, roles } = await api.get<OwnSessionAnswer>('admin/session')
    return { kind, secret, name, roles }
  }
  await api.get('v1/calls', { limit: 1 })
  return { kind, secret, name: '', roles: [] }
}

function kindChoice(value: Session['kind'], name: string, shows: string, checked: boolean): HTMLElement {
  return h(
    'label',
    { class: 'kind' },
    h('input', { type: 'radio', name: 'kind', value, checked }),
    h('span', {}, h('strong', {}, name), h('small', {}, shows)),
  )
}

import type { OwnSessionAnswer } from 'express-model-gateway/admin'
import { Api, ApiFault } from './api.ts'
import { fill, h } from './element.ts'
import { field, form } from './parts/form.ts'
import { faultNotice, notice } from './parts/notice.ts'
import { keepSession, type Session } from './session.ts'

/** Why the gateway signed nobody in, by the word behind `?refused=`. */
const REFUSALS: Readonly<Record<string, string>> = {
  no_role: 'Your account has no role in this gateway. Ask an administrator to assign one.',
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
  const act = async ({ secret = '' }: Readonly<Record<string, string>>) => {
    if (secret === '') return notice('bad', 'Type in your key or token.')
    const session = await sessionOf('key', secret).catch(async (fault: unknown) => {
      // Tried second: a wrong token counts as an attempt to guess one.
      if (isRefused(fault)) return operatorSession(secret)
      throw fault
    })
    if (!session) return notice('bad', 'This is neither a valid API key nor the token of an operator.')
    keepSession(session)
    done()
  }
  const entry = form({
    label: 'Sign in',
    submit: 'Sign in',
    act,
    fields: [
      field({
        name: 'secret',
        label: 'Key or token',
        hint: 'An API key shows its account. The ADMIN_TOKEN of the gateway, or an operator’s own token, is for those who run the service. It is kept in this tab until you sign out or close it, and sent to this gateway only.',
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

/** Offers to sign in at the provider, if there is one; signs in at once if the user has done so before, in any tab. */
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

/** Returns the session of an operator; undefined if the token is none of theirs, or there is no admin API. */
async function operatorSession(secret: string): Promise<Session | undefined> {
  try {
    return await sessionOf('admin', secret)
  } catch (fault) {
    if (isRefused(fault) || (fault instanceof ApiFault && fault.status === 404)) return undefined
    throw fault
  }
}

function isRefused(fault: unknown): boolean {
  return fault instanceof ApiFault && fault.status === 401
}

import { Api } from './api.ts'
import { h } from './element.ts'
import { field, form } from './parts/form.ts'
import { faultNotice, notice } from './parts/notice.ts'
import { keepSession, type Session } from './session.ts'

/**
 * Shows the sign-in page. A credential is checked before it is stored.
 *
 * @param refused why the previous session ended, unless the user ended it.
 */
export function signIn(refused: unknown, done: () => void): { element: HTMLElement; heading: HTMLElement } {
  const heading = h('h1', { tabindex: -1 }, 'Gateway console')
  const act = async ({ kind, secret = '' }: Readonly<Record<string, string>>) => {
    if (secret === '') return notice('bad', 'Type in your key or token.')
    const session: Session = { kind: kind === 'admin' ? 'admin' : 'key', secret }
    await tried(session)
    keepSession(session)
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
        kindChoice('admin', 'the admin token', 'everything, for those who run the service', false),
      ),
      field({
        name: 'secret',
        label: 'Key or token',
        hint: 'Kept in this tab until you sign out or close it, and sent to this gateway only.',
        attributes: { type: 'password', autocomplete: 'off', spellcheck: 'false', autofocus: true },
      }),
    ],
  })
  const reason = refused === undefined ? null : faultNotice(refused)
  return { element: h('main', { class: 'way-in', id: 'main' }, heading, reason, entry), heading }
}

/** Rejects if the credential is not valid. */
async function tried(session: Session): Promise<void> {
  const api = new Api(session)
  if (session.kind === 'admin') await api.get('admin/accounts', { limit: 1 })
  else await api.get('v1/calls', { limit: 1 })
}

function kindChoice(value: Session['kind'], name: string, shows: string, checked: boolean): HTMLElement {
  return h(
    'label',
    { class: 'kind' },
    h('input', { type: 'radio', name: 'kind', value, checked }),
    h('span', {}, h('strong', {}, name), h('small', {}, shows)),
  )
}

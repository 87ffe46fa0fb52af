import { h } from './element.ts'
import { search } from './parts/search.ts'
import { linkTo } from './router.ts'
import { NAVIGATION } from './routes.ts'
import { may, type Session } from './session.ts'
import type { ViewContent } from './view.ts'

/** The frame around the views. */
export interface FrameParts {
  readonly session: Session
  readonly place: string
  readonly shown: ViewContent
  signOut(): void
}

/** Creates the page around a view: a skip link, the navigation, and the view under its heading. */
export function frame({ session, place, shown, signOut }: FrameParts) {
  const heading = h('h1', { tabindex: -1 }, shown.title)
  const main = h(
    'main',
    { id: 'main', tabindex: -1 },
    h('div', { class: 'heading' }, heading, shown.actions && h('div', { class: 'buttons' }, shown.actions)),
    shown.content,
  )
  const skip = (event: Event): void => {
    // The router owns the fragment of the address, so the skip link must not change it.
    event.preventDefault()
    main.focus()
  }
  const element = h(
    'div',
    { class: 'frame' },
    h('a', { class: 'skip', href: '#main', click: skip }, 'Skip to the content'),
    header(session, place, signOut),
    main,
  )
  return { element, heading }
}

function header(session: Session, place: string, signOut: () => void): HTMLElement {
  const menu = h('div', { class: 'menu', id: 'menu' }, navigation(session, place), userInfo(session, signOut))
  const toggle = h(
    'button',
    { type: 'button', class: 'menu-button', 'aria-expanded': 'false', 'aria-controls': 'menu' },
    'Menu',
  )
  toggle.addEventListener('click', () => {
    const open = menu.classList.toggle('open')
    toggle.setAttribute('aria-expanded', String(open))
  })
  return h(
    'header',
    {},
    h(
      'div',
      { class: 'brand' },
      h('img', { src: 'console/icon.svg', alt: '', width: 20, height: 20 }),
      'Gateway',
    ),
    toggle,
    search(),
    menu,
  )
}

function navigation(session: Session, place: string): HTMLElement {
  const [path = ''] = place.split('?')
  const current = path.split('/')[1] ?? ''
  return h(
    'nav',
    { 'aria-label': 'Views' },
    NAVIGATION[session.kind]
      .filter(([, , role]) => role === undefined || may(session, role))
      .map(([view, text]) =>
        h('a', { href: linkTo(view), 'aria-current': view === current ? 'page' : null }, text),
      ),
  )
}

function userInfo({ kind, name, roles }: Session, signOut: () => void): HTMLElement {
  return h(
    'div',
    { class: 'who' },
    h('span', {}, kind === 'admin' ? `${name} (${roles.join(', ')})` : 'Key holder'),
    h('button', { type: 'button', class: 'quiet', click: signOut }, 'Sign out'),
  )
}

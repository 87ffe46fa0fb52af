import { Api } from './api.ts'
import { fill } from './element.ts'
import { frame } from './frame.ts'
import { announce, announcer } from './parts/announcer.ts'
import { currentPlace, destinationOf } from './router.ts'
import { ROUTES } from './routes.ts'
import { currentSession, forgetSession, type Session } from './session.ts'
import { signIn } from './sign-in.ts'
import { unknownView } from './views/unknown-view.ts'
import type { Visit } from './visit.ts'

let leave = new AbortController()

/** Shows what the address asks for, to whom is signed in; else the way in. */
function show(focus: boolean, refused?: unknown): void {
  leave.abort()
  leave = new AbortController()
  const session = currentSession()
  const heading = session ? showView(session) : showSignIn(refused)
  if (focus) {
    window.scrollTo(0, 0)
    heading.focus()
    announce(document.title)
  }
}

function showView(session: Session): HTMLElement {
  const place = currentPlace()
  const { view, params, query } = destinationOf(place, ROUTES) ?? {
    view: unknownView,
    params: {},
    query: new URLSearchParams(),
  }
  const api = new Api(session, (fault) => signOut(fault))
  const visit: Visit = { session, api, params, query, signal: leave.signal, reload: () => show(false) }
  const shown = view(visit)
  document.title = `${shown.title} – Gateway console`
  const { element, heading } = frame({ session, place, shown, signOut: () => signOut() })
  fill(document.body, element, announcer)
  return heading
}

function showSignIn(refused: unknown): HTMLElement {
  document.title = 'Sign in – Gateway console'
  const { element, heading } = signIn(refused, () => show(true))
  fill(document.body, element, announcer)
  return heading
}

function signOut(fault?: unknown): void {
  forgetSession()
  show(true, fault)
}

window.addEventListener('hashchange', () => show(true))
show(false)

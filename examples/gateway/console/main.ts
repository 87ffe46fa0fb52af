import { Api } from './api.ts'
import { fill } from './element.ts'
import { frame } from './frame.ts'
import { announce, announcer } from './parts/announcer.ts'
import { currentPlace, destinationOf } from './router.ts'
import { ROUTES } from './routes.ts'
import { currentSession, forgetSession, type Session } from './session.ts'
import { signIn } from './sign-in.ts'
import type { ViewContext } from './view.ts'
import { unknownView } from './views/unknown-view.ts'

let leave = new AbortController()

/** Shows the view of the address, or the sign-in page if nobody is signed in. */
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
  const context: ViewContext = {
    session,
    api,
    params,
    query,
    signal: leave.signal,
    reload: () => show(false),
  }
  const shown = view(context)
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
  const session = currentSession()
  // Only the gateway can end what a cookie stands for.
  if (session?.secret === null && fault === undefined) {
    forgetSession()
    const ended = new Api(session).send('DELETE', 'admin/session').catch(() => undefined)
    void ended.then(() => show(true))
    return
  }
  forgetSession()
  show(true, fault)
}

window.addEventListener('hashchange', () => show(true))
show(false)

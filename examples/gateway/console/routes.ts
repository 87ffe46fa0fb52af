import type { Route } from './router.ts'
import type { Session } from './session.ts'
import { accountList } from './views/account-list.ts'
import { accountPage, ownAccountPage } from './views/account-page.ts'
import { callList } from './views/call-list.ts'
import { callPage } from './views/call-page.ts'
import { changeList } from './views/change-list.ts'
import { findCall } from './views/find-call.ts'
import { keyList } from './views/key-list.ts'
import { keyPage } from './views/key-page.ts'
import { ledgerCheck } from './views/ledger-check.ts'
import { lineList } from './views/line-list.ts'
import { modelList } from './views/model-list.ts'
import { modelPage } from './views/model-page.ts'
import { ticketList } from './views/ticket-list.ts'
import { ticketPage } from './views/ticket-page.ts'
import { videoList } from './views/video-list.ts'
import { videoPage } from './views/video-page.ts'

/** All views with their addresses. */
export const ROUTES: readonly Route[] = [
  { pattern: '/', view: findCall },
  { pattern: '/calls', view: callList },
  { pattern: '/calls/:id', view: callPage },
  { pattern: '/account', view: ownAccountPage },
  { pattern: '/accounts', view: accountList },
  { pattern: '/accounts/:id', view: accountPage },
  { pattern: '/keys', view: keyList },
  { pattern: '/keys/:id', view: keyPage },
  { pattern: '/lines', view: lineList },
  { pattern: '/models', view: modelList },
  { pattern: '/models/:id', view: modelPage },
  { pattern: '/tickets', view: ticketList },
  { pattern: '/tickets/:id', view: ticketPage },
  { pattern: '/videos', view: videoList },
  { pattern: '/videos/:id', view: videoPage },
  { pattern: '/changes', view: changeList },
  { pattern: '/ledger', view: ledgerCheck },
]

/** The links of the navigation, by the role of the session. */
export const NAVIGATION: Readonly<
  Record<Session['kind'], readonly (readonly [view: string, text: string])[]>
> = {
  key: [
    ['', 'Find a call'],
    ['calls', 'Calls'],
    ['account', 'Account'],
    ['models', 'Models'],
    ['tickets', 'Tickets'],
  ],
  admin: [
    ['', 'Find a call'],
    ['calls', 'Calls'],
    ['accounts', 'Accounts'],
    ['keys', 'Keys'],
    ['lines', 'Lines'],
    ['models', 'Models'],
    ['tickets', 'Tickets'],
    ['videos', 'Videos'],
    ['changes', 'Changes'],
    ['ledger', 'Ledger'],
  ],
}

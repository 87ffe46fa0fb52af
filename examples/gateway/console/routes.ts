import type { Route } from './router.ts'
import type { Role, Session } from './session.ts'
import { accountList } from './views/account-list.ts'
import { accountPage, ownAccountPage } from './views/account-page.ts'
import { budgetList, budgetPage } from './views/budget-list.ts'
import { callList } from './views/call-list.ts'
import { callPage } from './views/call-page.ts'
import { changeList } from './views/change-list.ts'
import { driftList } from './views/drift-list.ts'
import { keyList } from './views/key-list.ts'
import { keyPage } from './views/key-page.ts'
import { ledgerCheck } from './views/ledger-check.ts'
import { lineList } from './views/line-list.ts'
import { modelList } from './views/model-list.ts'
import { modelPage } from './views/model-page.ts'
import { operatorList } from './views/operator-list.ts'
import { overview } from './views/overview.ts'
import { reports } from './views/reports.ts'
import { ticketList } from './views/ticket-list.ts'
import { ticketPage } from './views/ticket-page.ts'
import { videoList } from './views/video-list.ts'
import { videoPage } from './views/video-page.ts'
import { deliveryList, webhookList } from './views/webhook-list.ts'

/** All views with their addresses. */
export const ROUTES: readonly Route[] = [
  { pattern: '/', view: overview },
  { pattern: '/reports', view: reports },
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
  { pattern: '/drift', view: driftList },
  { pattern: '/budgets', view: budgetList },
  { pattern: '/budgets/:id', view: budgetPage },
  { pattern: '/operators', view: operatorList },
  { pattern: '/webhooks', view: webhookList },
  { pattern: '/webhooks/:id', view: deliveryList },
  { pattern: '/changes', view: changeList },
  { pattern: '/ledger', view: ledgerCheck },
]

/** The links of the navigation, by the role of the session. */
export const NAVIGATION: Readonly<
  Record<Session['kind'], readonly (readonly [view: string, text: string, needs?: Role])[]>
> = {
  key: [
    ['', 'Overview'],
    ['reports', 'Reports'],
    ['calls', 'Calls'],
    ['account', 'Account'],
    ['models', 'Models'],
    ['tickets', 'Tickets'],
  ],
  admin: [
    ['', 'Overview'],
    ['reports', 'Reports'],
    ['calls', 'Calls'],
    ['accounts', 'Accounts'],
    ['keys', 'Keys'],
    ['lines', 'Lines'],
    ['models', 'Models'],
    ['tickets', 'Tickets', 'support'],
    ['videos', 'Videos'],
    ['budgets', 'Budgets'],
    ['operators', 'Operators', 'admin'],
    ['webhooks', 'Webhooks', 'admin'],
    ['drift', 'Drift'],
    ['changes', 'Audit log'],
    ['ledger', 'Ledger', 'finance'],
  ],
}

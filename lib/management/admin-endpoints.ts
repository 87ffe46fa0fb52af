import type { Endpoint } from '../core/json-api/index.ts'
import { ALL_CALL_ENDPOINTS } from '../endpoints/calls/calls.ts'
import { ALL_MODEL_ENDPOINTS } from '../endpoints/models/models.ts'
import { ALL_USAGE_ENDPOINTS } from '../endpoints/usage/usage.ts'
import { ACCOUNT_ENDPOINTS } from './accounts/accounts.ts'
import { LEDGER_ENDPOINTS } from './accounts/ledger.ts'
import { DRIFT_ENDPOINTS } from './authority/drift.ts'
import { BUDGET_ENDPOINTS } from './budgets/budgets.ts'
import { KEY_ENDPOINTS } from './keys/keys.ts'
import { LINE_ENDPOINTS } from './lines/lines.ts'
import { CHANGE_ENDPOINTS } from './operators/changes.ts'
import { OPERATOR_ENDPOINTS } from './operators/operators.ts'
import { OWN_SESSION_ENDPOINTS, SESSION_ENDPOINTS } from './operators/sessions.ts'
import { ADMIN_TICKET_ENDPOINTS } from './tickets/admin-tickets.ts'
import { VIDEO_TASK_ENDPOINTS } from './video-tasks.ts'
import { WEBHOOK_ENDPOINTS } from './webhooks/webhooks.ts'

/** All endpoints of the admin API, in the order of the OpenAPI document. */
export const ADMIN_ENDPOINTS: readonly Omit<Endpoint<never>, 'handle'>[] = [
  ...OPERATOR_ENDPOINTS,
  ...OWN_SESSION_ENDPOINTS,
  ...SESSION_ENDPOINTS,
  ...ACCOUNT_ENDPOINTS,
  ...WEBHOOK_ENDPOINTS,
  ...BUDGET_ENDPOINTS,
  ...KEY_ENDPOINTS,
  ...DRIFT_ENDPOINTS,
  ...LINE_ENDPOINTS,
  ...ALL_MODEL_ENDPOINTS,
  ...ALL_CALL_ENDPOINTS,
  ...ALL_USAGE_ENDPOINTS,
  ...ADMIN_TICKET_ENDPOINTS,
  ...LEDGER_ENDPOINTS,
  ...VIDEO_TASK_ENDPOINTS,
  ...CHANGE_ENDPOINTS,
]

import type { OperatorAnswer, SessionAnswer as SignedIn } from 'express-model-gateway/admin'
import { h } from '../element.ts'
import { moment } from '../format.ts'
import { collection } from '../parts/collection.ts'
import { section } from '../parts/facts.ts'
import { choice, field } from '../parts/form.ts'
import { rotation } from '../parts/rotation.ts'
import { deletion } from '../parts/row-actions.ts'
import { newSecret } from '../parts/secret.ts'
import type { Column } from '../parts/table.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

type Operator = OperatorAnswer & {
  /** In the answer to a new one only. */
  readonly token?: string
}

const ROLES = [
  ['viewer', 'viewer: reads'],
  ['support', 'support: also tickets'],
  ['finance', 'finance: also money and budgets'],
  ['admin', 'admin: everything'],
] as const

const OPERATORS = 'admin/operators'
const SESSIONS = 'admin/sessions'

/** Lists the operators with tokens of their own, and those who signed in at a provider. */
export function operatorList(context: ViewContext): ViewContent {
  const editable = may(context.session, 'admin')
  const nameOf = ({ name }: Operator): string => name
  const operators = collection<Operator>(context, {
    what: 'operators',
    path: OPERATORS,
    columns: COLUMNS,
    empty: 'Only the admin token is in use.',
    one: 'operator',
    editable,
    nameOf,
    creation: {
      says: 'The operator gets a token of their own. It is shown once, and grants the permissions of the role.',
      fields: () => operatorFields(),
      bodyOf: (filled) => filled,
      made: ({ token = '', name }) => newSecret(token, name),
    },
    actions: [
      {
        text: 'Change',
        title: ({ name }) => `Change ${name}`,
        says: 'The token stays. The role counts from the next request on.',
        fields: operatorFields,
        submit: 'Save',
        done: 'Saved.',
        act: ({ id }, filled) =>
          context.api.send('PATCH', `${OPERATORS}/${encodeURIComponent(id)}`, filled).then(() => null),
      },
      rotation<Operator>(context, {
        path: OPERATORS,
        secret: 'token',
        overlap: '0',
        says: 'The new token is shown once. The previous token is rejected after the time that you choose.',
        nameOf,
      }),
      deletion(
        context,
        OPERATORS,
        'The token is rejected from the next request on. The audit log keeps the name.',
        nameOf,
      ),
    ],
  })
  const sessionOf = ({ name }: SignedIn): string => `the session of ${name}`
  const sessions = collection<SignedIn>(context, {
    what: 'sessions',
    path: SESSIONS,
    columns: SESSION_COLUMNS,
    empty: 'Nobody is signed in at a provider.',
    one: 'session',
    editable,
    nameOf: sessionOf,
    actions: [
      deletion(
        context,
        SESSIONS,
        'The browser is signed out at once. Users with a role at the provider can sign in again.',
        sessionOf,
      ),
    ],
  })
  return {
    title: 'Operators',
    actions: operators.actions,
    content: [operators.content, section('Sessions', sessions.content)],
  }
}

function operatorFields(operator?: Operator) {
  return h(
    'div',
    { class: 'fields' },
    field({
      name: 'name',
      label: 'Name',
      hint: 'The audit log shows it.',
      attributes: { required: true, value: operator?.name },
    }),
    choice({ name: 'role', label: 'Role' }, ROLES, operator?.role ?? 'viewer'),
  )
}

const COLUMNS: readonly Column<Operator>[] = [
  { name: 'Name', heads: true, cell: ({ name }) => name },
  { name: 'Role', cell: ({ role }) => role },
  { name: 'Id', cell: ({ id }) => h('span', { class: 'mono' }, id) },
  { name: 'Former token until', cell: ({ previous_token_until: at }) => at && moment(at) },
  { name: 'Created', cell: ({ created_at }) => moment(created_at) },
]

const SESSION_COLUMNS: readonly Column<SignedIn>[] = [
  { name: 'Name', heads: true, cell: ({ name }) => name },
  { name: 'Roles', cell: ({ roles }) => roles.join(', ') },
  { name: 'Signed in', cell: ({ created_at }) => moment(created_at) },
  { name: 'Until', cell: ({ expires_at }) => moment(expires_at) },
]

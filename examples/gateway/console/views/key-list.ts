import { moment, usd } from '../format.ts'
import type { Key } from '../keys.ts'
import { collection } from '../parts/collection.ts'
import { ACCOUNT, filterForm, filtersIn } from '../parts/filters.ts'
import { field } from '../parts/form.ts'
import { keyFields, keySettingsIn } from '../parts/key-fields.ts'
import { recordLink } from '../parts/links.ts'
import { newSecret } from '../parts/secret.ts'
import { badge } from '../parts/status.ts'
import type { Column } from '../parts/table.ts'
import { warningsBadge, warningsNotice } from '../parts/warnings.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists API keys, with a dialog for a new one. */
export function keyList(context: ViewContext): ViewContent {
  const query = filtersIn(context, [ACCOUNT])
  const { actions, content } = collection<Key>(context, {
    what: 'keys',
    path: 'admin/keys',
    query,
    columns: keyColumns(context),
    one: 'key',
    editable: may(context.session, 'admin'),
    nameOf: ({ id }) => id,
    creation: {
      says: 'Its secret is shown once. Empty fields mean no restriction.',
      fields: () => [
        field({ name: 'owner', label: 'Account', attributes: { value: query.account, required: true } }),
        field({
          name: 'id',
          label: 'Id',
          hint: 'Generated if it is empty.',
          attributes: { spellcheck: 'false' },
        }),
        keyFields(),
      ],
      bodyOf: (filled) => ({
        account: filled.owner,
        ...(filled.id && { id: filled.id }),
        ...keySettingsIn(filled),
      }),
      made: (key) => [newSecret(key.secret ?? '', key.id), warningsNotice(key)],
    },
  })
  return { title: 'Keys', actions, content: [filterForm(context, 'keys', [ACCOUNT]), content] }
}

export function keyState({ enabled, expires_at: expires }: Key): HTMLElement {
  if (!enabled) return badge('off', 'disabled')
  return expires !== null && Date.parse(expires) <= Date.now()
    ? badge('bad', 'expired')
    : badge('good', 'enabled')
}

export function keyColumns({ session }: ViewContext): readonly Column<Key>[] {
  return [
    { name: 'Key', heads: true, cell: ({ id }) => recordLink(session, 'key', id) },
    { name: 'Name', cell: ({ name }) => name },
    { name: 'Account', cell: ({ account }) => recordLink(session, 'account', account) },
    { name: 'State', cell: (key) => [keyState(key), warningsBadge(key)] },
    { name: 'Expires', cell: ({ expires_at: at }) => (at === null ? 'never' : moment(at)) },
    { name: 'Models', cell: ({ allow_models }) => allow_models?.join(', ') ?? 'all' },
    { name: 'Last used', cell: ({ last_used_at: at }) => (at === null ? 'never' : moment(at)) },
    { name: 'Spent', figures: true, cell: ({ spent }) => usd(spent) },
    { name: 'Quota', figures: true, cell: ({ quota }) => (quota === null ? 'none' : usd(quota)) },
  ]
}

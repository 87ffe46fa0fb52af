import type { Page } from '../api.ts'
import { h } from '../element.ts'
import { listedMoment, usd } from '../format.ts'
import { callLink } from '../parts/call-columns.ts'
import { choice, field, filterForm } from '../parts/form.ts'
import { emptyState } from '../parts/notice.ts'
import { paged } from '../parts/pager.ts'
import { type Column, table } from '../parts/table.ts'
import { linkTo } from '../router.ts'
import { VIDEO_STATES, type VideoTask, videoBadge } from '../videos.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists the video tasks of all accounts. */
export function videoList({ api, query, signal }: ViewContext): ViewContent {
  const state = query.get('state') ?? ''
  const account = query.get('account') ?? ''
  const asked = { ...(state && { state }), ...(account && { account }), limit: 50 }
  const list = paged(
    'videos',
    (cursor) => api.get<Page<VideoTask>>('admin/video-tasks', { ...asked, cursor }, signal),
    (rows) => (rows.length === 0 ? emptyState('No videos that fit.') : table('Videos', COLUMNS, rows)),
  )
  const states = VIDEO_STATES.map((name) => [name, name === 'unresolved' ? 'in doubt' : name] as const)
  const filter = filterForm(
    'videos',
    choice({ name: 'state', label: 'State' }, [['', 'all'], ...states], state),
    field({ name: 'account', label: 'Account', attributes: { value: account } }),
  )
  return { title: 'Videos', content: [filter, list] }
}

const COLUMNS: readonly Column<VideoTask>[] = [
  { name: 'Made', cell: ({ created_at }) => listedMoment(created_at) },
  {
    name: 'Video',
    heads: true,
    cell: ({ id }) => h('a', { href: linkTo('videos', id), class: 'mono' }, id),
  },
  { name: 'State', cell: (task) => videoBadge(task) },
  { name: 'Account', cell: ({ account }) => h('a', { href: linkTo('accounts', account) }, account) },
  { name: 'Model', cell: ({ model }) => model },
  { name: 'Line', cell: ({ line }) => line },
  { name: 'Held', figures: true, cell: ({ held }) => usd(held) },
  { name: 'Charged', figures: true, cell: ({ charged }) => charged && usd(charged) },
  { name: 'Call', cell: ({ request_id }) => callLink(request_id) },
]

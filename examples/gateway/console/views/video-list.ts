import { h } from '../element.ts'
import { listedMoment, usd } from '../format.ts'
import { ACCOUNT, type Filter, filterForm, filtersIn } from '../parts/filters.ts'
import { callLink, recordLink } from '../parts/links.ts'
import { listing } from '../parts/listing.ts'
import type { Column } from '../parts/table.ts'
import { linkTo } from '../router.ts'
import { VIDEO_STATES, type VideoTask, videoBadge } from '../videos.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const FILTERS: readonly Filter[] = [
  {
    name: 'state',
    label: 'State',
    options: [['', 'all'], ...VIDEO_STATES.map((name) => [name, name] as const)],
  },
  ACCOUNT,
]

/** Lists the video tasks of all accounts. */
export function videoList(context: ViewContext): ViewContent {
  const list = listing(context, {
    what: 'videos',
    path: 'admin/video-tasks',
    query: filtersIn(context, FILTERS),
    columns: columnsOf(context),
  })
  return { title: 'Videos', content: [filterForm(context, 'videos', FILTERS), list] }
}

function columnsOf({ session }: ViewContext): readonly Column<VideoTask>[] {
  return [
    { name: 'Created', cell: ({ created_at }) => listedMoment(created_at) },
    {
      name: 'Video',
      heads: true,
      cell: ({ id }) => h('a', { href: linkTo('videos', id), class: 'mono' }, id),
    },
    { name: 'State', cell: (task) => videoBadge(task) },
    { name: 'Account', cell: ({ account }) => recordLink(session, 'account', account) },
    { name: 'Model', cell: ({ model }) => recordLink(session, 'model', model) },
    { name: 'Line', cell: ({ line }) => recordLink(session, 'line', line) },
    { name: 'Held', figures: true, cell: ({ held }) => usd(held) },
    { name: 'Charged', figures: true, cell: ({ charged }) => charged && usd(charged) },
    { name: 'Call', cell: ({ request_id }) => callLink(request_id) },
  ]
}

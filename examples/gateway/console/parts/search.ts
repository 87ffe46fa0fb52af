import { h } from '../element.ts'
import { linkTo, linkWith } from '../router.ts'
import { filledIn } from './form.ts'

/** The views of what is found by an id, by how the id begins. Any other id is one that a caller gave its call. */
const VIEWS: readonly (readonly [prefix: string, view: string])[] = [
  ['req_', 'calls'],
  ['tkt_', 'tickets'],
  ['video_', 'videos'],
]

/** Creates the search field of every page: it finds a call by a request id, a ticket or a video by its number. */
export function search(): HTMLElement {
  const form = h(
    'form',
    {
      class: 'search',
      role: 'search',
      submit: (event: Event) => {
        event.preventDefault()
        const { id = '' } = filledIn(form)
        const view = VIEWS.find(([prefix]) => id.startsWith(prefix))?.[1]
        if (id === '') return
        location.hash = view ? linkTo(view, id) : linkWith('calls', { client_request_id: id })
      },
    },
    h('input', {
      name: 'id',
      type: 'search',
      class: 'mono',
      'aria-label': 'Request id',
      placeholder: 'Find req_…',
      title: 'The X-Request-Id of an answer or of your own, or the number of a ticket or video',
      autocomplete: 'off',
      spellcheck: 'false',
    }),
  )
  return form
}

import { type Child, fill, h } from '../element.ts'
import { moment, usd } from '../format.ts'
import { announce } from '../parts/announcer.ts'
import { confirmed } from '../parts/dialog.ts'
import { facts, section } from '../parts/facts.ts'
import { field, form } from '../parts/form.ts'
import { callLink, recordLink } from '../parts/links.ts'
import { loaded } from '../parts/loaded.ts'
import { notice } from '../parts/notice.ts'
import { may } from '../session.ts'
import { type VideoTask, videoBadge } from '../videos.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Shows a video task; until it ends, with a form to resolve it. */
export function videoPage(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const path = `admin/video-tasks/${encodeURIComponent(id)}`
  const content = loaded('the video', async () => {
    const place = h('div', { class: 'stack' })
    const show = (task: VideoTask): void => fill(place, ...taskParts(context, path, task, show))
    show(await context.api.get<VideoTask>(path, {}, context.signal))
    return place
  })
  return { title: 'Video', content: [h('p', { class: 'mono subject' }, id), content] }
}

function taskParts(
  context: ViewContext,
  path: string,
  task: VideoTask,
  show: (task: VideoTask) => void,
): Child[] {
  const { session } = context
  const { charged, finished_at: finishedAt, upstream_id: upstreamId } = task
  const mayResolve = finishedAt === null && task.state !== 'intended'
  return [
    facts([
      ['State', videoBadge(task)],
      ['Held', usd(task.held)],
      ['Charged', charged && usd(charged)],
      ['Error', task.error_code],
      ['Account', recordLink(session, 'account', task.account)],
      ['Key', recordLink(session, 'key', task.key)],
      ['Model', recordLink(session, 'model', task.model)],
      ['Line', recordLink(session, 'line', task.line)],
      ['Id at the provider', upstreamId && h('span', { class: 'mono' }, upstreamId)],
      ['Created', moment(task.created_at)],
      ['Ended', finishedAt && moment(finishedAt)],
      ['Call', callLink(task.request_id)],
    ]),
    mayResolve &&
      may(session, 'finance') &&
      section('Resolve this task', ...resolution(context, path, task, show)),
  ]
}

/** Creates the form to resolve a task, for an operator who has looked at the provider's list of videos or its bill. */
function resolution(
  { api }: ViewContext,
  path: string,
  { held, account }: VideoTask,
  show: (task: VideoTask) => void,
): Child[] {
  const resolve = async (body: object, said: string): Promise<null> => {
    show(await api.send<VideoTask>('POST', `${path}/resolve`, body))
    announce(said)
    return null
  }
  return [
    h(
      'p',
      { class: 'muted' },
      'You cannot undo this. First look for the video in the provider’s list, or on its bill.',
    ),
    h('h3', {}, 'The video was generated'),
    form({
      label: 'The video was generated: charge it',
      submit: 'Charge',
      fields: field({ name: 'amount', label: 'Amount in US dollars', hint: `At most ${usd(held)}.` }),
      async act({ amount = '' }) {
        if (amount === '') return notice('bad', 'Enter the amount.')
        const sure = await confirmed(
          'Charge this video?',
          `${account} is charged ${amount} US dollars, and the rest of the hold is released.`,
          'Charge it',
        )
        return sure ? resolve({ outcome: 'charged', amount }, 'Charged.') : null
      },
    }),
    h('h3', {}, 'The video was not generated'),
    form({
      label: 'The video was not generated: release the hold',
      submit: 'Release',
      fields: null,
      async act() {
        const sure = await confirmed(
          'Release the hold of this video?',
          `${usd(held)} are released, and nothing is charged for it.`,
          'Release it',
        )
        return sure ? resolve({ outcome: 'released' }, 'Released.') : null
      },
    }),
  ]
}

import { type Child, fill, h } from '../element.ts'
import { moment, usd } from '../format.ts'
import { printReadyMessage } from '../parts/announcer.ts'
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
      ['Its id there', upstreamId && h('span', { class: 'mono' }, upstreamId)],
      ['Made', moment(task.created_at)],
      ['Over', finishedAt && moment(finishedAt)],
      ['Call', callLink(task.request_id)],
    ]),
    mayResolve &&
      may(session, 'finance') &&
      section('Say what came of it', ...resolution(context, path, task, show)),
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
    printReadyMessage(said)
    return null
  }
  return [
    h(
      'p',
      { class: 'muted' },
      'Once, and not to be taken back. Look at the provider’s own list of videos, or at its bill.',
    ),
    h('h3', {}, 'It was made'),
    form({
      label: 'It was made: charge it',
      submit: 'Charge',
      fields: field({ name: 'amount', label: 'Amount in US dollars', hint: `At most ${usd(held)}.` }),
      async act({ amount = '' }) {
        if (amount === '') return notice('bad', 'Type in what it costs.')
        const sure = await confirmed(
          'Charge this video?',
          `${amount} US dollars are taken of ${account}, and what is held beyond that is free again.`,
          'Charge it',
        )
        return sure ? resolve({ outcome: 'charged', amount }, 'Charged.') : null
      },
    }),
    h('h3', {}, 'It was not made'),
    form({
      label: 'It was not made: release it',
      submit: 'Release',
      fields: null,
      async act() {
        const sure = await confirmed(
          'Release this video?',
          `${usd(held)} are free again, and nothing is ever charged for it.`,
          'Release it',
        )
        return sure ? resolve({ outcome: 'released' }, 'Released.') : null
      },
    }),
  ]
}

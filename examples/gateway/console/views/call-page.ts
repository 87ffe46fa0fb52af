import { adviceOn } from '../advice.ts'
import { type Call, findCall } from '../calls.ts'
import { type Child, h } from '../element.ts'
import { count, duration, moment, NOTHING } from '../format.ts'
import { billingSection } from '../parts/call-billing.ts'
import { copyButton } from '../parts/copy-button.ts'
import { facts, section, tiles } from '../parts/facts.ts'
import { fileTicket } from '../parts/file-ticket.ts'
import { pairsText } from '../parts/form.ts'
import { callLink, recordLink } from '../parts/links.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState, notice } from '../parts/notice.ts'
import { callStatus } from '../parts/status.ts'
import { waterfall } from '../parts/waterfall.ts'
import type { Session } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Shows all that the log has about a call. */
export function callPage(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const content = loaded('the call', async () => {
    const call = await findCall(context, id)
    return [
      callSections(call, context.session),
      context.session.kind === 'key' && section('A ticket', fileTicket(context, id)),
    ]
  })
  return {
    title: 'Call',
    actions: copyButton(id, 'the request id'),
    content: [h('p', { class: 'mono subject' }, id), content],
  }
}

/** Returns the sections of a call, for its page and for tickets. */
export function callSections(call: Call, session: Session): Child {
  const advice = adviceOn(call.error_code)
  return [
    tiles([
      ['Result', callStatus(call)],
      ['Began', moment(call.created_at)],
      ['Duration', duration(call.duration_ms)],
      ['Model', recordLink(session, 'model', call.model) ?? NOTHING],
    ]),
    advice !== undefined && notice('info', h('p', {}, advice)),
    section('Routing', routing(call, session)),
    h(
      'div',
      { class: 'columns' },
      section('Request', request(call, session)),
      h(
        'div',
        { class: 'stack' },
        call.limit && section('Limit', limit(call.limit)),
        section('Usage', usage(call)),
        billingSection(call),
      ),
    ),
    call.guards && section('Guards', guards(call.guards)),
    section('Answer', answer(call)),
  ]
}

function request(call: Call, session: Session): HTMLElement {
  const { request: parameters } = call
  const original = call.original_request_id
  return facts([
    ['Endpoint', h('span', { class: 'mono' }, `${call.method} ${call.path}`)],
    ['Protocol', `${call.protocol}${call.stream ? ', streamed' : ''}`],
    ['Account', recordLink(session, 'account', call.account)],
    ['Key', recordLink(session, 'key', call.key)],
    ['User', recordLink(session, 'user', call.user)],
    ['Tags', call.tags && pairsText(call.tags)],
    ['Address', call.client_ip],
    ['Client request id', call.client_request_id],
    ['Idempotency-Key', call.idempotency_key],
    ...(original === null ? [] : [['First call with this key', callLink(original)] as const]),
    ...(call.cache === undefined ? [] : [['Cache', call.cache] as const]),
    ...(call.cached_from === undefined ? [] : [['Cached from', callLink(call.cached_from)] as const]),
    ...(parameters === null
      ? []
      : ([
          ['Messages', count(parameters.messages)],
          ['Tools', count(parameters.tools)],
          ['Images', count(parameters.images)],
          ['Maximum output', tokens(parameters.max_output_tokens)],
          ['Estimated input', tokens(parameters.estimated_input_tokens)],
          ['Provider constraint', constraint(parameters.provider)],
        ] as const)),
  ])
}

/** The decisions of guards, with their durations. */
function guards(decisions: NonNullable<Call['guards']>): Child {
  return facts(
    decisions.map(({ guard, on, decision, checks, duration_ms: ms }) => [
      `${guard}, ${on}`,
      `${decision}, ${count(checks)} ${checks === 1 ? 'check' : 'checks'} in ${count(ms)} ms`,
    ]),
  )
}

function constraint(provider: unknown): Child {
  return provider === null ? 'none' : h('code', {}, JSON.stringify(provider))
}

function tokens(value: number | null): Child {
  return value === null ? null : `${count(value)} tokens`
}

function routing({ routing: trace, cache }: Call, session: Session): Child {
  if (cache === 'hit') return emptyState('The call was not routed: it was answered from the cache.')
  if (!trace) return emptyState('The call was not routed: it was answered or refused before.')
  const {
    region,
    strategy,
    eliminated,
    eliminated_omitted: omitted = 0,
    attempts,
    disconnect,
    retry_budget_spent: spent,
  } = trace
  return [
    h(
      'p',
      { class: 'muted' },
      `Region ${region}, strategy ${strategy}. ${eliminated.length + omitted} eliminated, ${attempts.length} attempted.`,
    ),
    eliminated.length + attempts.length === 0
      ? emptyState('The model has no line.')
      : waterfall(trace, session),
    spent &&
      notice(
        'info',
        h('p', {}, 'A retry was withheld: all lines were down and the retry budget of the model was spent.'),
      ),
    disconnect &&
      notice(
        'info',
        h('p', {}, `The caller left. Policy: ${disconnect.policy}; the upstream: ${disconnect.ended}.`),
      ),
  ]
}

function usage({ usage: used }: Call): Child {
  if (!used) return emptyState('Nothing was used.')
  const more = [
    ['Images', used.images],
    ['Seconds', used.seconds],
    ['Search units', used.search_units],
    ['Web searches', used.web_searches],
    ['Minutes', used.minutes],
  ] as const
  return facts([
    ['Input', tokens(used.input_tokens)],
    ['Cached input', tokens(used.cached_input_tokens)],
    ['Cache writes', tokens(used.cache_write_tokens)],
    ['Output', tokens(used.output_tokens)],
    ...more.filter(([, value]) => value !== undefined).map(([name, value]) => [name, count(value)] as const),
    ['Source', used.source === 'measured' ? 'measured by the upstream' : 'estimated by the gateway'],
  ])
}

const LIMITED: Readonly<Record<string, string>> = {
  rpm: 'requests a minute',
  tpm: 'tokens a minute',
  requests: 'requests in its window',
  tokens: 'tokens in its window',
  concurrency: 'requests at a time',
}

function limit(reached: NonNullable<Call['limit']>): HTMLElement {
  return facts([
    ['Limit', `${LIMITED[reached.kind] ?? reached.kind}: ${count(reached.limit)}`],
    ['Scope', `${reached.level} ${reached.subject}`],
    ['Retry after', `${reached.retry_after} s`],
  ])
}

function answer({ response_body: body }: Call): Child {
  if (body === null) return emptyState('Not kept. Answers are kept for calls with an Idempotency-Key.')
  return h('pre', { class: 'body', tabindex: 0, 'aria-label': 'The answer as it was sent' }, indented(body))
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    // The body is a stream's events, or it broke off.
    return body
  }
}

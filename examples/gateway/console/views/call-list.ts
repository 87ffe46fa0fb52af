import { ERROR_CODES } from '../advice.ts'
import {
  ACCOUNT,
  type Filter,
  filterForm,
  filtersIn,
  KEY,
  LINE,
  MODEL,
  oneOf,
  TAG,
  timeFilter,
  USER,
} from '../parts/filters.ts'
import { LiveCalls } from '../parts/live-calls.ts'
import type { Session } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists calls, newest first. The filters are in the address, so that you can share a list as a link. */
export function callList(context: ViewContext): ViewContent {
  const filters = filtersOf(context.session)
  const calls = new LiveCalls(context, filtersIn(context, filters))
  return {
    title: 'Calls',
    actions: calls.controls,
    content: [filterForm(context, 'calls', filters), calls.element],
  }
}

function filtersOf({ kind }: Session): readonly Filter[] {
  return [
    ...(kind === 'admin' ? [ACCOUNT, LINE] : []),
    KEY,
    USER,
    TAG,
    MODEL,
    {
      name: 'status',
      label: 'Status',
      suggestions: ['2xx', '4xx', '5xx'],
      attributes: { pattern: '[1-5]([0-9][0-9]|xx)', title: 'An HTTP status, such as 429 or 5xx', size: 5 },
    },
    oneOf('outcome', 'Outcome', ['completed', 'refused', 'failed', 'interrupted']),
    oneOf('counted', 'Counted as', ['requests', 'refused', 'failed']),
    { name: 'code', label: 'Error code', suggestions: ERROR_CODES, attributes: { spellcheck: 'false' } },
    {
      name: 'min_duration_ms',
      label: 'Minimum duration',
      attributes: { inputmode: 'numeric', pattern: '[0-9]*', title: 'Milliseconds', size: 7 },
    },
    { name: 'client_request_id', label: 'Client request id', attributes: { spellcheck: 'false' } },
    timeFilter('from', 'From'),
    timeFilter('to', 'To'),
  ]
}

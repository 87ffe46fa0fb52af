import type { WebhookEvent, WebhookEventType } from './webhook-event.ts'

/** The members of an event's data that the sentences read; each type has some of them. */
type Data = Readonly<Record<string, string | number | null | undefined>>

/** An event in words: a sentence, and the view of the console that shows more. */
interface EventText {
  readonly sentence: string
  readonly view: string
}

const viewOf = (list: string, id: unknown): string => `/${list}/${encodeURIComponent(`${id}`)}`
const minute = (time: unknown): string => `${time}`.replace('T', ' ').replace(/:\d\d\.\d+Z$/, ' UTC')

const EVENT_TEXTS: Readonly<Record<WebhookEventType, (data: Data) => EventText>> = {
  'budget.threshold': ({ budget, share, amount, spent }) => ({
    sentence: `${Math.floor(Number(share) * 100)} % of the budget ${budget} is spent: ${spent} of ${amount}.`,
    view: viewOf('budgets', budget),
  }),
  'budget.exhausted': ({ budget, amount, spent }) => ({
    sentence: `The budget ${budget} is used up: ${spent} of ${amount} are spent.`,
    view: viewOf('budgets', budget),
  }),
  'balance.low': ({ account, balance, threshold }) => ({
    sentence: `The balance of the account ${account} is ${balance}, which is below ${threshold}.`,
    view: viewOf('accounts', account),
  }),
  'key.expiring': ({ key, account, expires_at }) => ({
    sentence: `The key ${key} of the account ${account} ends on ${minute(expires_at)}.`,
    view: viewOf('keys', key),
  }),
  'line.down': ({ line }) => ({ sentence: `No call succeeds on the line ${line}.`, view: '/lines' }),
  'line.up': ({ line }) => ({
    sentence: `Calls succeed on the line ${line} again, or nobody uses it any more.`,
    view: '/lines',
  }),
  'ledger.away': ({ from, until }) => ({
    sentence: `The ledger was away from ${minute(from)} until ${minute(until)}.`,
    view: '/',
  }),
  'ticket.opened': ({ ticket, account, request_id }) => ({
    sentence: `The account ${account} opened the ticket ${ticket} about the call ${request_id}.`,
    view: viewOf('tickets', ticket),
  }),
}

/**
 * Returns an event as an incoming webhook of Slack takes it: one sentence, with a link to the console.
 *
 * @param consoleUrl the address of the console, without a slash at its end; undefined: there is no link.
 */
export function slackMessage(
  { type, data }: Pick<WebhookEvent, 'type' | 'data'>,
  consoleUrl: string | undefined,
): object {
  const { sentence, view } = EVENT_TEXTS[type](data as Data)
  const text = escaped(sentence)
  return { text: consoleUrl === undefined ? text : `${text} <${consoleUrl}#${view}|Open the console>` }
}

/** Escapes the characters of Slack's own marks: names of accounts and keys may hold any. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

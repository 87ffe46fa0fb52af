import { type CallerView, chatView, messageView, responseView } from './caller-view.ts'
import { chatPlain, chatStreamed, completionPlain, completionStreamed } from './chat-line.ts'
import { CONTENT_FORMS, type Content, type Shape, type StopReason } from './content-forms.ts'
import { messagePlain, messageStreamed } from './message-line.ts'
import { responsePlain, responseStreamed } from './response-line.ts'

/** How the lines of a protocol answer. */
export interface LineForm {
  /** The members of the line's config. */
  readonly config: object
  plain(content: Content, reason: StopReason): object
  streamed(content: Content, reason: StopReason, shape: Shape): readonly string[]
  readonly named: boolean
  /** The reasons that carry no information; the first is that of an ordinary answer. */
  readonly plainReasons: readonly StopReason[]
  /** The reason of moderation; undefined where the protocol has none. */
  readonly moderated?: string
  /** All others. */
  readonly reasons: readonly string[]
}

/** How the callers of an endpoint ask and read. */
export interface CallerForm {
  readonly path: string
  readonly body: object
  /** The form of a refusal: a member of its own, or the text of an answer. */
  readonly refusalIs: 'apart' | 'text'
  /** Reads a translated answer as the caller would. */
  view(body: string, streamed: boolean): CallerView
}

const CHAT_LINE: LineForm = {
  config: { endpoints: ['chat/completions'] },
  plain: chatPlain,
  streamed: chatStreamed,
  named: false,
  plainReasons: ['stop', null],
  moderated: 'content_filter',
  reasons: ['length', 'model_length', 'tool_calls', 'function_call', 'something_new'],
}
const COMPLETION_LINE: LineForm = {
  ...CHAT_LINE,
  config: {},
  plain: completionPlain,
  streamed: completionStreamed,
  reasons: ['length', 'something_new'],
}
const MESSAGE_LINE: LineForm = {
  config: { protocol: 'anthropic' },
  plain: messagePlain,
  streamed: messageStreamed,
  named: true,
  plainReasons: ['end_turn', null],
  reasons: [
    'max_tokens',
    'model_context_window_exceeded',
    'stop_sequence',
    'tool_use',
    'pause_turn',
    'compaction',
    'something_new',
  ],
}
const RESPONSE_LINE: LineForm = {
  config: {},
  plain: responsePlain,
  streamed: responseStreamed,
  named: true,
  plainReasons: ['completed'],
  moderated: 'content_filter',
  reasons: ['max_output_tokens', 'something_new'],
}

const CHAT: CallerForm = {
  path: '/v1/chat/completions',
  body: { messages: [{ role: 'user', content: 'hi' }] },
  refusalIs: 'apart',
  view: chatView,
}
const MESSAGES: CallerForm = {
  path: '/v1/messages',
  body: { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] },
  refusalIs: 'text',
  view: messageView,
}
const RESPONSES: CallerForm = {
  path: '/v1/responses',
  body: { input: 'hi', store: false },
  refusalIs: 'apart',
  view: responseView,
}
const COMPLETIONS: CallerForm = { ...CHAT, path: '/v1/completions', body: { prompt: 'hi' } }

/** A caller's endpoint on a line. */
export interface Direction {
  readonly name: string
  readonly caller: CallerForm
  readonly line: LineForm
  readonly forms: Readonly<Record<string, Content>>
  /** The caller's reason for the line's; undefined where the line has the caller's endpoint. */
  readonly finish?: (reason: StopReason, content: Content) => string
}

const hasCalls = ({ calls = [] }: Content): boolean => calls.length > 0

/** The reasons of all lines for an answer that is complete. Any other, unknown ones included, may mean that it was cut. */
const COMPLETE: ReadonlySet<StopReason> = new Set([
  null,
  'stop',
  'end_turn',
  'stop_sequence',
  'tool_use',
  'tool_calls',
  'function_call',
])

function chatFinish(reason: StopReason, content: Content): string {
  if (content.refusal !== undefined) return 'stop'
  if (!COMPLETE.has(reason)) return 'length'
  return hasCalls(content) ? 'tool_calls' : 'stop'
}

function messageFinish(reason: StopReason, content: Content): string {
  if (reason === 'content_filter') return 'refusal'
  if (!COMPLETE.has(reason)) return 'max_tokens'
  if (hasCalls(content)) return 'tool_use'
  return content.refusal === undefined ? 'end_turn' : 'refusal'
}

function responseFinish(reason: StopReason): string {
  if (reason === 'content_filter') return 'content_filter'
  return COMPLETE.has(reason) ? 'completed' : 'max_output_tokens'
}

const { text = {}, 'empty text': emptyText = {}, nothing = {} } = CONTENT_FORMS
const TEXT_FORMS = { text, 'empty text': emptyText, nothing }

/** All directions that exist. */
export const DIRECTIONS: readonly Direction[] = [
  { name: 'chat on a chat line', caller: CHAT, line: CHAT_LINE, forms: CONTENT_FORMS },
  {
    name: 'chat on a message line',
    caller: CHAT,
    line: MESSAGE_LINE,
    forms: CONTENT_FORMS,
    finish: chatFinish,
  },
  { name: 'a message on a message line', caller: MESSAGES, line: MESSAGE_LINE, forms: CONTENT_FORMS },
  {
    name: 'a message on a chat line',
    caller: MESSAGES,
    line: CHAT_LINE,
    forms: CONTENT_FORMS,
    finish: messageFinish,
  },
  { name: 'a response on a response line', caller: RESPONSES, line: RESPONSE_LINE, forms: CONTENT_FORMS },
  {
    name: 'a response on a chat line',
    caller: RESPONSES,
    line: CHAT_LINE,
    forms: CONTENT_FORMS,
    finish: responseFinish,
  },
  {
    name: 'a response on a message line',
    caller: RESPONSES,
    line: MESSAGE_LINE,
    forms: CONTENT_FORMS,
    finish: (reason, content) => responseFinish(chatFinish(reason, content)),
  },
  { name: 'a completion', caller: COMPLETIONS, line: COMPLETION_LINE, forms: TEXT_FORMS },
]

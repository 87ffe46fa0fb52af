/** A call of a tool; without arguments the upstream writes none. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input?: Readonly<Record<string, unknown>>
}

/** The content of an answer, whatever the protocol. */
export interface Content {
  /** Comes before the text; `sealed` reasoning has no words. */
  readonly reasoning?: string
  readonly sealed?: boolean
  readonly text?: string
  readonly refusal?: string
  /** A part that no version of the protocol names. */
  readonly unknown?: boolean
  /** Comes behind the unknown part. */
  readonly moreText?: string
  readonly calls?: readonly ToolCall[]
}

const weather: ToolCall = { id: 'call_1', name: 'weather', input: { city: 'Oslo', days: [1, 2] } }
const clock: ToolCall = { id: 'call_2', name: 'clock' }

/** Every form of content, by name. */
export const CONTENT_FORMS: Readonly<Record<string, Content>> = {
  text: { text: 'Hello there' },
  'empty text': { text: '' },
  nothing: {},
  'a tool call': { calls: [weather] },
  'a tool call without arguments': { calls: [clock] },
  'parallel tool calls': { calls: [weather, clock, { ...weather, id: 'call_3' }] },
  'text and a tool call': { text: 'Let me look.', calls: [weather] },
  'reasoning only': { reasoning: 'Let me think.' },
  'reasoning and text': { reasoning: 'Let me think.', text: 'Hello' },
  'reasoning, text and tool calls': { reasoning: 'Hm.', text: 'Look:', calls: [weather, clock] },
  'omitted reasoning': { sealed: true },
  'omitted reasoning and text': { sealed: true, text: 'Hello' },
  'omitted reasoning and a tool call': { sealed: true, calls: [weather] },
  'a refusal': { refusal: 'I cannot help with that.' },
  'an unknown part': { unknown: true },
  'an unknown part between texts': { text: 'Before. ', unknown: true, moreText: 'After.' },
}

/** Whether there is anything in it. */
export const isFilled = ({ reasoning, sealed, text, refusal, unknown, calls }: Content): boolean =>
  Boolean(reasoning || sealed || text || refusal || unknown || calls)

/** How a stream brings its content. */
export type Shape = 'deltas' | 'first event' | 'last event'
export const SHAPES: readonly Shape[] = ['deltas', 'first event', 'last event']

/** Why an answer ended, as a line says it; null where it says nothing. */
export type StopReason = string | null

/** The input tokens that a line reports: they decide the charge. */
export const INPUT_TOKENS = 7
export const OUTPUT_TOKENS = 3

/** The two halves of a text. */
export const halves = (text: string): readonly string[] => {
  const middle = Math.ceil(text.length / 2)
  return text === '' ? [''] : [text.slice(0, middle), text.slice(middle)]
}

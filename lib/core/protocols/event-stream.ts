/** One event of a `text/event-stream`. */
export interface StreamEvent {
  /** The `event:` field; undefined if the frame has none. */
  readonly event: string | undefined
  /** The `data:` lines joined by a newline; empty for a comment. */
  readonly data: string
}

/** Whether a `Content-Type` is that of a stream of events. */
export function isEventStream(type: string | undefined): boolean {
  return type !== undefined && /^text\/event-stream\b/i.test(type)
}

const LINE_END = /\r\n|\n|\r/

const BYTE_ORDER_MARK = '\ufeff'

/** Reads one frame: the lines up to a blank line. Ignores comments, unknown fields and a byte order mark. */
export function readFrame(frame: string): StreamEvent {
  let event: string | undefined
  let data: string | undefined
  const text = frame.startsWith(BYTE_ORDER_MARK) ? frame.slice(1) : frame
  for (const line of text.split(LINE_END)) {
    if (line === '' || line.startsWith(':')) continue
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'data') data = data === undefined ? value : `${data}\n${value}`
    else if (field === 'event') event = value === '' ? undefined : value
  }
  return { event, data: data ?? '' }
}

/** So many characters before a text may belong to the blank line that ends in it. */
export const MAX_BLANK_LENGTH = 4

/**
 * Returns the index behind the last complete frame of `text` and its blank line, or -1. `text` may be UTF-8 read as
 * latin1, because line ends are ASCII.
 */
export function endOfLastFrame(text: string): number {
  const newline = text.lastIndexOf('\n\n')
  let end = newline < 0 ? -1 : newline + 2
  if (!text.includes('\r')) return end
  // Rare: the server ends its lines with CR LF, CR, or a mixture.
  const blank = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!$))/g
  for (let match = blank.exec(text); match; match = blank.exec(text)) end = Math.max(end, blank.lastIndex)
  return end
}

/**
 * Returns the index behind the frame that starts at `from` and its blank line, or -1 if it is not complete.
 *
 * @param hasReturns whether a CR occurs anywhere in `text`. Asked here it would be looked for in all that follows, and
 *   each event would cost as much as all of them.
 */
export function endOfFrame(text: string, from: number, hasReturns: boolean): number {
  if (!hasReturns) {
    const newline = text.indexOf('\n\n', from)
    return newline < 0 ? -1 : newline + 2
  }
  const blank = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!$))/g
  blank.lastIndex = from
  return blank.test(text) ? blank.lastIndex : -1
}

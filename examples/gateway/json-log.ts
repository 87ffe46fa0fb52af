import { destination, type Logger, pino } from 'pino'

/** Orders to a terminal, changes of direction, line ends that are none in JSON, and what cannot be seen. */
const NOT_TEXT = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--\n]/gv

/**
 * A log of one JSON object a line on the standard output. What callers send stands in it as they sent it, but nothing in
 * it does anything to a terminal, or to a reader that ends lines elsewhere: JSON leaves many such characters as they are.
 */
export function jsonLog(level: string): Logger {
  const output = destination(1)
  return pino({ level }, { write: (line: string) => void output.write(line.replace(NOT_TEXT, escaped)) })
}

/** As JSON would have it, so that a reader of the object gets the character back. */
function escaped(character: string): string {
  let text = ''
  for (let i = 0; i < character.length; i++) {
    text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
  }
  return text
}

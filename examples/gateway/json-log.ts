import { hostname } from 'node:os'
import { inspect } from 'node:util'
import type { Logger } from 'express-model-gateway'
import { destination, levels, stdSerializers } from 'pino'

/** Orders to a terminal, changes of direction, line ends that are none in JSON, and what cannot be seen. */
const NOT_TEXT = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]--\n]/gv

/**
 * A log of one JSON object a line on the standard output, with pino's members. What callers send stands in it as they
 * sent it, but nothing in it does anything to a terminal, or to a reader that ends lines elsewhere: JSON leaves many
 * such characters as they are.
 *
 * pino itself puts a line together member by member, which allocates four times what the line is made of here.
 */
export function jsonLog(level: string): Logger {
  const output = destination(1)
  const least = levels.values[level] ?? Number.POSITIVE_INFINITY
  const source = `"pid":${process.pid},"hostname":${JSON.stringify(hostname())}`
  const logAt = (name: keyof Logger): Logger[typeof name] => {
    const severity = levels.values[name] as number
    if (severity < least) return () => {}
    return (fields, message) => {
      const begin = `{"level":${severity},"time":${Date.now()},${source}`
      const line = `${begin}${membersOf(fields)},"msg":${JSON.stringify(message)}}\n`
      output.write(line.replace(NOT_TEXT, escaped))
    }
  }
  return { info: logAt('info'), warn: logAt('warn'), error: logAt('error') }
}

/** The fields as members that follow others. A log never throws: what is no JSON is told as text. */
function membersOf(fields: object & { err?: unknown }): string {
  let json: string
  try {
    json = JSON.stringify(
      fields.err instanceof Error ? { ...fields, err: stdSerializers.err(fields.err) } : fields,
    )
  } catch {
    json = JSON.stringify({ fields: inspect(fields) })
  }
  return json === '{}' ? '' : `,${json.slice(1, -1)}`
}

/** As JSON would have it, so that a reader of the object gets the character back. */
function escaped(character: string): string {
  let text = ''
  for (let i = 0; i < character.length; i++) {
    text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
  }
  return text
}

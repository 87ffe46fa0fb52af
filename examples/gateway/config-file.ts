import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { ConfigError } from 'express-model-gateway'

/**
 * Reads a config file: YAML if its name ends in `.yaml` or `.yml`, else JSON.
 *
 * @throws {ConfigError} if it cannot be read or holds no object. The fault names the line, and quotes nothing, because
 * the file may hold secrets.
 */
export async function readConfigFile(path: string): Promise<object> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw fault(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  const isYaml = ['.yaml', '.yml'].includes(extname(path).toLowerCase())
  const value = isYaml ? await parseYaml(text, path) : parseJson(text, path)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw fault(`${path} must hold a ${isYaml ? 'mapping' : 'JSON object'}`)
}

function fault(text: string): ConfigError {
  return new ConfigError([`GATEWAY_CONFIG: ${text}`])
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw fault(`${path} is not valid JSON${lineOf(error as Error, text)}`)
  }
}

/** Returns the line of a JSON error. The error's message is not shown, because it quotes the text. */
function lineOf({ message }: Error, text: string): string {
  const quoted = /, (\.\.\.)?"(.*)"(?:\.\.\.)? is not valid JSON$/s.exec(message)
  // V8's quote begins ten characters before the error, unless it begins with the text.
  const quotedAt = quoted?.[1] ? text.indexOf(quoted[2] as string) + 10 : undefined
  const position = /at position (\d+)/.exec(message)?.[1]
  const at = position === undefined ? quotedAt : Number(position)
  return at === undefined ? '' : `: look at line ${text.slice(0, at).split('\n').length}`
}

async function parseYaml(text: string, path: string): Promise<unknown> {
  const { LineCounter, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const [error] = [...document.errors, ...document.warnings]
  if (error) {
    throw fault(`${path} is not valid YAML (${error.code}): look at line ${lines.linePos(error.pos[0]).line}`)
  }
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch {
    throw fault(`${path} is not valid YAML: it has an alias without an anchor, or too many of them`)
  }
}

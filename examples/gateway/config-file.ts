import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { ConfigError } from 'express-model-gateway/config'
import { errorText } from './error-text.ts'
import { parseYaml } from './parse-yaml.ts'

/** Who named the config file: the option of the command, or the variable. */
export type ConfigOrigin = '--config' | 'GATEWAY_CONFIG'

/**
 * Reads a config file: YAML if its name ends in `.yaml` or `.yml`, else JSON.
 *
 * @throws {ConfigError} if it cannot be read or holds no object. The fault names the line, and quotes nothing, because
 * the file may hold secrets.
 */
export async function readConfigFile(path: string, origin: ConfigOrigin): Promise<object> {
  try {
    return await readMapping(path)
  } catch (error) {
    throw new ConfigError([`${origin}: ${errorText(error)}`])
  }
}

async function readMapping(path: string): Promise<object> {
  const isYaml = ['.yaml', '.yml'].includes(extname(path).toLowerCase())
  const text = await readText(path)
  const value = isYaml ? await parseYaml(text, path) : parseJson(text, path)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new Error(`${path} must hold a ${isYaml ? 'mapping' : 'JSON object'}`)
}

/** @throws {Error} that names the file and why it cannot be read. */
export async function readText(path: string): Promise<string> {
  try {
    // Editors on Windows begin a file with a byte order mark.
    return (await readFile(path, 'utf8')).replace(/^\uFEFF/, '')
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${path} is not valid JSON${lineOf(error as Error, text)}`)
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

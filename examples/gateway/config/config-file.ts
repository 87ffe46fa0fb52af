import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { ConfigError } from 'express-model-gateway/config'
import { errorText } from '../errors.ts'
import { lineAndColumn, placeOf, placesInJson, placesInYaml } from './config-places.ts'
import type { ConfigOrigin } from './environment.ts'
import { parseInParts } from './yaml-parts.ts'

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
  const text = await readText(path)
  const value = isYaml(path) ? await parseYaml(text, path) : await parseJson(text, path)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new Error(`${path} must hold a ${isYaml(path) ? 'mapping' : 'JSON object'}`)
}

function isYaml(path: string): boolean {
  return ['.yaml', '.yml'].includes(extname(path).toLowerCase())
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

/** @throws {Error} that names the file and the line, and quotes nothing, because the file may hold secrets. */
async function parseJson(text: string, path: string): Promise<unknown> {
  const { visit } = await import('jsonc-parser')
  let fault: { at: number; is: string } | undefined
  const note = (at: number, is: string): void => {
    fault ??= { at, is }
  }
  const open: Set<string>[] = []
  visit(
    text,
    {
      onObjectBegin: () => void open.push(new Set()),
      onObjectProperty: (name, at) => {
        const names = open.at(-1) as Set<string>
        if (names.has(name)) note(at, 'has a member twice')
        names.add(name)
      },
      onObjectEnd: () => void open.pop(),
      onError: (_, at) => note(at, 'is not valid JSON'),
    },
    { disallowComments: true },
  )
  if (fault) throw new Error(`${path} ${fault.is}: look at ${lineAndColumn(text, fault.at)}`)
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${path} is not valid JSON`)
  }
}

/**
 * Parses YAML. `<<` merges.
 *
 * @param version of YAML: in 1.1, `yes` is true.
 * @throws {Error} that names the file and the line, and quotes nothing, because the file may hold secrets.
 */
export async function parseYaml(
  text: string,
  path: string,
  version: '1.1' | '1.2' = '1.2',
): Promise<unknown> {
  const { CORE_SCHEMA, load, loadAll, mergeTag, YAML11_SCHEMA, YAMLException } = await import('js-yaml')
  const schema = version === '1.1' ? YAML11_SCHEMA : CORE_SCHEMA.withTags(mergeTag)
  const options = { schema, maxTotalMergeKeys: -1 }
  const joined = parseInParts(text, (part) => load(part, options))
  if (joined) return joined
  try {
    const [value, ...more] = loadAll(text, options)
    if (more.length === 0) return value
  } catch (error) {
    if (!(error instanceof YAMLException) || !error.mark) throw new Error(`${path} is not valid YAML`)
    const fault = error.reason === 'duplicated mapping key' ? 'has a member twice' : 'is not valid YAML'
    throw new Error(`${path} ${fault}: look at ${lineAndColumn(text, error.mark.position)}`)
  }
  throw new Error(`${path} is not valid YAML: it has several documents`)
}

/** Adds the line and the column to each fault of a config file. */
export async function withPlaces(faults: readonly string[], path: string): Promise<string[]> {
  const text = await readText(path)
  const top = isYaml(path) ? await placesInYaml(text) : await placesInJson(text)
  return faults.map((fault) => {
    const place = placeOf(fault, top)
    return place ? `${fault} (${lineAndColumn(text, place.at)})` : fault
  })
}

import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { ConfigError } from 'express-model-gateway/config'
import { errorText } from '../errors.ts'
import { lineAndColumn, placeOf, placesInJson, placesInYaml } from './config-places.ts'
import type { ConfigOrigin } from './environment.ts'
import { digestOf, type ListText, restOf } from './list-texts.ts'
import { listsInYaml, parseInParts } from './yaml-parts.ts'

/** The content of a config file. */
export interface ConfigContent {
  readonly value: object
  /** Identifies accounts and keys as they are written. Undefined if their text alone does not say which they are. */
  readonly listed: string | undefined
  /** Whether accounts and keys were not read, because they are the known ones. */
  readonly isKnown: boolean
}

/**
 * Reads a config file: YAML if its name ends in `.yaml` or `.yml`, else JSON.
 *
 * @param known identifies accounts and keys that need not be read again.
 * @throws {ConfigError} if it cannot be read or holds no object. The fault names the line, and quotes nothing, because
 * the file may hold secrets.
 */
export async function readConfigFile(
  path: string,
  origin: ConfigOrigin,
  known?: string,
): Promise<ConfigContent> {
  try {
    return await readContent(path, known)
  } catch (error) {
    throw new ConfigError([`${origin}: ${errorText(error)}`])
  }
}

async function readContent(path: string, known: string | undefined): Promise<ConfigContent> {
  const text = await readText(path)
  const lists = isYaml(path) ? listsInYaml(text) : await listsInJson(text, path)
  const listed = lists.length > 0 ? digestOf(text, lists) : undefined
  if (listed !== undefined && listed === known) {
    const rest = await parsed(restOf(text, lists), path).catch(() => undefined)
    if (isMapping(rest) && hasNoOthers(rest, lists) && lists.every(({ name }) => isEmpty(rest[name]))) {
      for (const { name } of lists) delete rest[name]
      return { value: rest, listed, isKnown: true }
    }
    // A fault is named when the whole text is parsed, where it is in its own line.
  }
  const apart = await parsedWith(lists, text, path)
  const value = apart ?? (await parsed(text, path))
  if (!isMapping(value)) throw new Error(`${path} must hold a ${isYaml(path) ? 'mapping' : 'JSON object'}`)
  return { value, listed: apart && hasNoOthers(value, lists) ? listed : undefined, isKnown: false }
}

async function parsed(text: string, path: string): Promise<unknown> {
  return isYaml(path) ? parseYaml(text, path) : parseJson(text, path)
}

/** Parses a text that has these lists. Returns undefined if they are not what they look like. */
async function parsedWith(lists: readonly ListText[], text: string, path: string): Promise<unknown> {
  return isYaml(path) ? parseInParts(text, lists, (await yamlParser('1.2')).parse) : parseJson(text, path)
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a config has no other accounts and keys than those of these lists. */
function hasNoOthers(value: Readonly<Record<string, unknown>>, lists: readonly ListText[]): boolean {
  return ['accounts', 'keys'].every(
    (name) => value[name] === undefined || lists.some((list) => list.name === name),
  )
}

/** Whether a list is empty, as JSON or YAML has it. */
function isEmpty(list: unknown): boolean {
  return list === null || (Array.isArray(list) && list.length === 0)
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

/**
 * Finds the accounts and keys of a JSON text.
 *
 * @throws {Error} that names the file and the line, and quotes nothing, because the file may hold secrets.
 */
async function listsInJson(text: string, path: string): Promise<ListText[]> {
  const { visit } = await import('jsonc-parser')
  let fault: { at: number; is: string } | undefined
  const note = (at: number, is: string): void => {
    fault ??= { at, is }
  }
  const lists: ListText[] = []
  /** The members of each object around a place, and undefined for each list. */
  const open: (Set<string> | undefined)[] = []
  let member = ''
  let begin = 0
  visit(
    text,
    {
      onObjectBegin: () => void open.push(new Set()),
      onObjectProperty: (name, at) => {
        const names = open.at(-1) as Set<string>
        if (names.has(name)) note(at, 'has a member twice')
        names.add(name)
        if (open.length === 1) member = name
      },
      onObjectEnd: () => void open.pop(),
      onArrayBegin: (at) => {
        open.push(undefined)
        if (open.length === 2) begin = at + 1
      },
      onArrayEnd: (end) => {
        open.pop()
        if (open.length === 1 && ['accounts', 'keys'].includes(member))
          lists.push({ name: member, begin, end })
      },
      onError: (_, at) => note(at, 'is not valid JSON'),
    },
    { disallowComments: true },
  )
  if (fault) throw new Error(`${path} ${fault.is}: look at ${lineAndColumn(text, fault.at)}`)
  return lists
}

function parseJson(text: string, path: string): unknown {
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
  const { parseAll, YAMLException } = await yamlParser(version)
  try {
    const [value, ...more] = parseAll(text)
    if (more.length === 0) return value
  } catch (error) {
    if (!(error instanceof YAMLException) || !error.mark) throw new Error(`${path} is not valid YAML`)
    const fault = error.reason === 'duplicated mapping key' ? 'has a member twice' : 'is not valid YAML'
    throw new Error(`${path} ${fault}: look at ${lineAndColumn(text, error.mark.position)}`)
  }
  throw new Error(`${path} is not valid YAML: it has several documents`)
}

async function yamlParser(version: '1.1' | '1.2') {
  const { CORE_SCHEMA, load, loadAll, mergeTag, YAML11_SCHEMA, YAMLException } = await import('js-yaml')
  const schema = version === '1.1' ? YAML11_SCHEMA : CORE_SCHEMA.withTags(mergeTag)
  const options = { schema, maxTotalMergeKeys: -1 }
  return {
    parse: (text: string): unknown => load(text, options),
    parseAll: (text: string): unknown[] => loadAll(text, options),
    YAMLException,
  }
}

/** Adds the line and the column to each fault of a config file, which can be parsed if it has one. */
export async function withPlaces(faults: readonly string[], path: string): Promise<string[]> {
  if (faults.length === 0) return []
  const text = await readText(path)
  const top = isYaml(path) ? await placesInYaml(text) : await placesInJson(text)
  return faults.map((fault) => {
    const place = placeOf(fault, top)
    return place ? `${fault} (${lineAndColumn(text, place.at)})` : fault
  })
}

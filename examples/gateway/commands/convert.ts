import { basename } from 'node:path'
import { ConfigError } from 'express-model-gateway/config'
import { dump } from 'js-yaml'
import { parseYaml, readText } from '../config/config-file.ts'
import { type Converted, convertLitellm } from '../convert/litellm/convert.ts'
import { isMapping } from '../convert/litellm/members.ts'
import { convertPriceList } from '../convert/litellm/price-list.ts'

/**
 * Prints LiteLLM's config as one of this gateway, and to stderr what could not be carried over. Returns the exit code.
 *
 * @throws {Error} if the file cannot be read, or is no config of LiteLLM's.
 */
export async function printConverted(file: string, env: NodeJS.ProcessEnv): Promise<number> {
  // LiteLLM reads its file as YAML 1.1.
  const content = await parseYaml(await readText(file), file, '1.1')
  if (!isMapping(content) || !Array.isArray(content.model_list))
    throw new ConfigError([`${file} has no list model_list: it is no config of a LiteLLM proxy`])
  const converted = convertLitellm({ ...content, model_list: content.model_list }, env)
  for (const note of converted.notes) console.error(note)
  if (converted.from.length === 0) {
    console.error(`${file}: no line can be made of its deployments, so there is no config`)
    return 1
  }
  process.stdout.write(toYaml(converted, file))
  return 0
}

/**
 * Prints LiteLLM's price list as models of a config, and to stderr what could not be carried over. Returns the exit code.
 *
 * @throws {Error} if the file cannot be read, or is no such list.
 */
export async function printPrices(file: string): Promise<number> {
  const list = priceListIn(await readText(file))
  if (!isMapping(list)) throw new ConfigError([`${file} is no JSON object: it is no price list of LiteLLM's`])
  const { models, notes } = convertPriceList(list)
  for (const note of notes) console.error(note)
  if (models.length === 0) {
    console.error(`${file}: it has no model that this gateway can serve`)
    return 1
  }
  process.stdout.write(`${commentOf(file)}${yamlOf({ models })}`)
  return 0
}

function priceListIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function toYaml({ config, from }: Converted, file: string): string {
  const members = Object.entries(config).map(([name, value]) => {
    if (name !== 'lines') return yamlOf({ [name]: value })
    const lines = from.map((paths, i) => `# ${paths.join(', ')}\n${yamlOf([value[i]])}`)
    return `lines:\n${lines.join('').replaceAll(/^(?=.)/gm, '  ')}`
  })
  return `${commentOf(file)}${members.join('')}`
}

function commentOf(file: string): string {
  return `# Converted from ${basename(file)}\n\n`
}

function yamlOf(value: object): string {
  return dump(value, { lineWidth: -1, noRefs: true, skipInvalid: true, quoteStyle: 'double' })
}

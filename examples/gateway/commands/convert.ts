import { basename } from 'node:path'
import { ConfigError } from 'express-model-gateway/config'
import { Document, isNode } from 'yaml'
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
  process.stdout.write(toYaml(converted, basename(file)))
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
  const document = new Document({ models }, { aliasDuplicateObjects: false })
  document.commentBefore = ` Converted from ${basename(file)}`
  process.stdout.write(document.toString({ lineWidth: 0 }))
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
  const document = new Document(config, { aliasDuplicateObjects: false })
  document.commentBefore = ` Converted from ${file}`
  for (const [i, paths] of from.entries()) {
    const line = document.getIn(['lines', i], true)
    if (isNode(line)) line.commentBefore = ` ${paths.join(', ')}`
  }
  return document.toString({ lineWidth: 0 })
}

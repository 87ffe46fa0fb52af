import assert from 'node:assert/strict'
import { parse } from 'yaml'
import { convertLitellm, type LitellmFile } from '../../../examples/gateway/convert/litellm/convert.ts'
import { loadConfig } from '../../support/any-config.ts'

/** A line of a converted config, as far as tests look at it. */
export interface Line {
  readonly id: string
  readonly models: Readonly<Record<string, string>>
  readonly [member: string]: unknown
}

export interface Config {
  readonly models: readonly { readonly id: string; readonly [member: string]: unknown }[]
  readonly lines: readonly Line[]
  readonly routing: object
  readonly [member: string]: unknown
}

/** An environment in which every variable is set. */
const EVERYTHING_SET = new Proxy({}, { get: () => 'sk-of-the-environment' })

/** Converts a file of LiteLLM's; what comes of it must be a valid config. */
export function convert(yaml: string, env: Record<string, string> = {}) {
  const { config, from, notes } = convertLitellm(parse(yaml, { version: '1.1' }) as LitellmFile, env)
  if (from.length > 0) loadConfig(withoutUndefined(config), EVERYTHING_SET)
  return { config: withoutUndefined(config) as Config, from, notes }
}

/** Converts a file with one deployment, and returns its model and line. */
export function convertOne(params: string, info = '{}', env: Record<string, string> = {}) {
  const { config, notes } = convert(
    `model_list: [{ model_name: chat, litellm_params: ${params}, model_info: ${info} }]`,
    env,
  )
  assert.ok(config.lines.length <= 1)
  return { model: config.models[0], line: config.lines[0], notes }
}

/** The notes on a path. */
export function notesOn(notes: readonly string[], path: string): string[] {
  return notes.filter((note) => note.startsWith(`${path}: `)).map((note) => note.slice(path.length + 2))
}

function withoutUndefined(config: object): object {
  return JSON.parse(JSON.stringify(config))
}

import { parseArgs } from 'node:util'
import { ConfigError } from 'express-model-gateway/config'

/** The action of the command; `config` is the path of the config file, `source` that of the file to convert. */
export type CommandLine =
  | {
      readonly action: 'run' | 'check' | 'schema' | 'version' | 'help' | 'prune'
      readonly config: string | undefined
      /** The path of a module with middlewares of your own; undefined = none. */
      readonly use?: string | undefined
    }
  | {
      readonly action: 'convert'
      readonly config: undefined
      readonly format: 'litellm' | 'litellm-prices'
      readonly source: string
    }
  | { readonly action: 'backup' | 'restore'; readonly config: string | undefined; readonly file: string }
  /** `downTo` is the last migration to stay; undefined = bring the database up to date. */
  | { readonly action: 'migrate'; readonly config: string | undefined; readonly downTo: string | undefined }

export const USAGE = `Usage: express-model-gateway [options]
       express-model-gateway convert litellm FILE
       express-model-gateway convert litellm-prices FILE
       express-model-gateway migrate [--down-to NAME]
       express-model-gateway prune --config FILE
       express-model-gateway backup FILE
       express-model-gateway restore FILE

Without a config it runs a demo, whose models answer by rule and are no AI.

  --config FILE   the config, JSON or YAML; a .env beside it is read too
  --use FILE      a module with middlewares of your own
  --check         print the faults of the config and the environment, and exit
  --schema        print the JSON Schema of the config
  --version, -v   print the version
  --help, -h      print this

convert litellm prints the config.yaml of a LiteLLM proxy as a config, convert litellm-prices its price list as models of
a config, and to stderr what they cannot carry over.
migrate brings the database up to date, which a start does too, or undoes all migrations after NAME.
prune exports and deletes what is older than the config's retention, which a running gateway does too.
backup writes the database to FILE, while gateways run. restore puts FILE in its place: stop all gateways first.

Environment: PORT (8787), HOST (127.0.0.1), GATEWAY_CONFIG (as --config), DATABASE_URL, REDIS_URL, ADMIN_TOKEN,
WORKERS, LOG_LEVEL and others: docs/run-the-gateway.md of the package express-model-gateway has them all.`

export const OPTIONS = {
  config: { type: 'string' },
  use: { type: 'string' },
  check: { type: 'boolean' },
  schema: { type: 'boolean' },
  version: { type: 'boolean', short: 'v' },
  help: { type: 'boolean', short: 'h' },
  'down-to': { type: 'string' },
} as const

/**
 * Reads the arguments of the command.
 *
 * @throws {ConfigError} if there is an argument that the command does not have.
 */
export function readCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parse(args)
  const { config, use, 'down-to': downTo } = values
  const asked = (['help', 'version', 'schema', 'check'] as const).find((name) => values[name])
  const [command, ...rest] = positionals
  if (use !== undefined && command !== undefined) throw misuse(`${command} does not take --use`)
  if (downTo !== undefined && (command !== 'migrate' || asked === 'help'))
    throw misuse('--down-to belongs to migrate')
  if (asked === 'help' || command === undefined)
    return { action: asked ?? 'run', config, ...(use !== undefined && { use }) }
  const [first, ...more] = rest
  switch (command) {
    case 'migrate':
      if (asked || first !== undefined) throw misuse('migrate takes only --down-to NAME and --config')
      return { action: 'migrate', config, downTo }
    case 'prune':
      if (asked || first !== undefined) throw misuse('prune takes only --config')
      return { action: 'prune', config }
    case 'backup':
    case 'restore':
      if (asked || first === undefined || more.length > 0)
        throw misuse(`${command} takes one file and --config`)
      return { action: command, config, file: first }
    case 'convert': {
      const [source, ...others] = more
      const isKnown = first === 'litellm' || first === 'litellm-prices'
      if (!isKnown || source === undefined || others.length > 0 || Object.keys(values).length > 0)
        throw misuse('convert takes "litellm" or "litellm-prices" and the path of one file, and no option')
      return { action: 'convert', config: undefined, format: first, source }
    }
    default:
      throw misuse(`Unexpected argument '${command}'`)
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    // Node's second sentence explains positional arguments that start with a dash: there are none.
    throw misuse(`${(error as Error).message.split(/\.(?:\s|$)/)[0]}`)
  }
}

function misuse(text: string): ConfigError {
  return new ConfigError([`${text}; see express-model-gateway --help`])
}

import { parseArgs } from 'node:util'
import { ConfigError } from 'express-model-gateway'

/** What the command is asked to do. */
export interface CommandLine {
  readonly action: 'run' | 'check' | 'schema' | 'version' | 'help'
  /** The path of the config file. */
  readonly config: string | undefined
}

export const USAGE = `Usage: express-model-gateway [options]

Without a config it runs a demo, whose models answer by rule and are no AI.

  --config FILE   the config, JSON or YAML; a .env beside it is read too
  --check         print the faults of the config and the environment, and exit
  --schema        print the JSON Schema of the config
  --version       print the version
  --help          print this

Environment: PORT (8787), HOST (127.0.0.1), GATEWAY_CONFIG (as --config), DATABASE_URL, REDIS_URL, ADMIN_TOKEN,
WORKERS, LOG_LEVEL and others; see the README of the package.`

const OPTIONS = {
  config: { type: 'string' },
  check: { type: 'boolean' },
  schema: { type: 'boolean' },
  version: { type: 'boolean', short: 'v' },
  help: { type: 'boolean', short: 'h' },
} as const

/**
 * Reads the arguments of the command.
 *
 * @throws {ConfigError} if there is an argument that the command does not have.
 */
export function readCommandLine(args: readonly string[]): CommandLine {
  const values = parse(args)
  const action = (['help', 'version', 'schema', 'check'] as const).find((name) => values[name]) ?? 'run'
  return { action, config: values.config }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    throw new ConfigError([`${(error as Error).message.split('\n')[0]}; see express-model-gateway --help`])
  }
}
